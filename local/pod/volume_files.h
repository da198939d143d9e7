// SPDX-License-Identifier: Apache-2.0
// The files in volumes of the types configMap, secret, downwardAPI and projected. Pure; untrusted input.
// Source: Kubernetes, pkg/volume/{configmap,secret,downwardapi,projected} (MakePayload, CollectData).
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "local/pod/input.h"

namespace muster::local {

struct VolumeFile {
  std::string text;
  int mode = 0644;
};
using VolumeFiles = std::map<std::string, VolumeFile>;  // by their path below the volume

// The files of `source`, a volume's field `type`. Of the modes of a Secret's files only the owner's part counts.
// NotFound: a ConfigMap, Secret or key is missing and not optional.
StatusOr<VolumeFiles> FilesOfVolume(controller::Fields source, std::string_view type, const PodInput& input);

// TidyPath() of a relative `path` without "..". Empty: `path` is empty, or wrong, of which `object` has complained at
// its field `name`.
std::string PathBelow(controller::Fields object, const char* name, std::string_view path);

}  // namespace muster::local
