// What stands for the image of a container: a folder with its files, and what its configuration says. Pure but for
// ReadImageRoot.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::controller {

struct ImageRoot {
  std::string folder;  // absolute; the containers see it as "/", read-only
  // Of the image's configuration, for containers that do not say it themselves.
  std::vector<std::string> entrypoint, command;
  std::vector<std::string> environment;  // "KEY=VALUE"
  std::string working_directory;         // empty: "/"
};

// By the image as a pod names it, or by its last part without tag and digest; "": all others. The images of Muster,
// which are this machine's binaries, have none.
using ImageRoots = std::map<std::string, ImageRoot, std::less<>>;
const ImageRoot* RootOfImage(const ImageRoots& roots, std::string_view image);  // null: there is none

// "[IMAGE=]PATH" of a flag. What begins with '/' or '.' is a path, whatever else it has.
struct ImageFlag {
  std::string image, path;
};
ImageFlag ReadImageFlag(const std::string& text);

// Of --image-root: the folder at `path`. InvalidArgument names the flag: it is no folder that can be read.
StatusOr<ImageRoot> ReadImageRoot(const std::string& path);

// `environment` of a container without an image, "KEY=VALUE", as one of `root` has it: PATH, HOME and the language are
// the image's. HOME is /tmp where the image says none: the root is read-only. So is USER "user": the image's
// /etc/passwd has no name for whoever runs this, and Python's getpass asks for one.
std::vector<std::string> EnvironmentInRoot(const std::vector<std::string>& environment, const ImageRoot& root);

}  // namespace muster::controller
