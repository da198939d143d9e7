// SPDX-License-Identifier: Apache-2.0
// Images of --oci, each unpacked once into the state folder: <images>/<SHA-256 of index.json or manifest.json>/root.
//
// A process that is killed while it unpacks leaves <images>/*.part, which the next one that unpacks removes. Blocking.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "local/image/root.h"

namespace muster::local {

// `path`: an OCI image layout, or the output of `docker save`, as a tar (also compressed) or a folder. `images`:
// absolute, created if missing. `say`: for a person, before what may take long, and if members are left out. Errors:
// those of ReadImageParts and UnpackTar, with the file's name and, if there is one, the remedy.
StatusOr<ImageRoot> UnpackImage(const std::string& path, const std::string& images,
                                const std::function<void(const std::string&)>& say);

}  // namespace muster::local
