// Images of --oci, each unpacked once into the state folder: <images>/<sha256 of what it says of itself>/root.
//
// A start that is killed leaves <images>/*.part, which the next one that unpacks takes away. Blocking.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "controller/local/image_root.h"

namespace muster::controller {

// `path`: an OCI image layout or what `docker save` writes, a tar (also compressed) or a folder. `images`: absolute,
// made where it is missing. `say`: to a person, before what may take long. Errors name the file and, where there is
// one, the remedy: those of ReadImageParts and UnpackTar.
StatusOr<ImageRoot> UnpackImage(const std::string& path, const std::string& images,
                                const std::function<void(const std::string&)>& say);

}  // namespace muster::controller
