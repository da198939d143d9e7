// SPDX-License-Identifier: Apache-2.0
// The layers and the settings of an image, as its JSON files name them: an OCI image layout (index.json), or the output
// of `docker save` (manifest.json). Pure; untrusted input. Sources: OCI image-spec 1.1, image-layout.md, manifest.md,
// config.md; moby's image/tarexport.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "local/image/root.h"

namespace muster::local {

// Returns the whole content of a file of the image; `path` is relative to the image. NotFound: there is no such file.
using ReadImageFile = std::function<StatusOr<std::string>(const std::string& path)>;

struct ImageParts {
  std::vector<std::string> layers;  // paths of tars, the lowest first
  ImageRoot settings;               // `folder` is empty
};

inline constexpr size_t kMostLayers = 1000;

// `architecture`: this machine's, by the name that images use, as "amd64". InvalidArgument: there is no image, there
// are several, there is none for Linux on that architecture, or the content of a blob does not match its digest.
StatusOr<ImageParts> ReadImageParts(const ReadImageFile& read, std::string_view architecture);

// The digest in the path "blobs/sha256/<hex>"; empty: `path` names no digest.
std::string_view DigestOfPath(std::string_view path);

}  // namespace muster::local
