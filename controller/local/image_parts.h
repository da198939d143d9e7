// What an image's own files say of it: an OCI image layout (index.json), or what `docker save` writes (manifest.json).
// Pure; outside bytes. Sources: OCI image-spec 1.1, image-layout.md, manifest.md, config.md; moby's image/tarexport.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "controller/local/image_root.h"

namespace muster::controller {

// A file of the image's, by its path in it, whole. NotFound: there is none.
using ReadImageFile = std::function<StatusOr<std::string>(const std::string& path)>;

struct ImageParts {
  std::vector<std::string> layers;  // paths of tars, the lowest first
  ImageRoot settings;               // without a folder
};

inline constexpr size_t kMostLayers = 1000;

// `architecture`: of this machine, as images name it: amd64. InvalidArgument: it is no image, is one of several, has
// none for Linux on that architecture, or a blob does not have the digest that names it.
StatusOr<ImageParts> ReadImageParts(const ReadImageFile& read, std::string_view architecture);

// "blobs/sha256/<hex>" has a name that says its digest; empty: `path` has none.
std::string_view DigestOfPath(std::string_view path);

}  // namespace muster::controller
