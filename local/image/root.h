// SPDX-License-Identifier: Apache-2.0
// What replaces the image of a container here: a folder with its files, and the settings of its configuration. Pure,
// except for ReadImageRoot.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::local {

struct ImageRoot {
  std::string folder;  // absolute; the containers see it as "/", read-only
  // The image's configuration, used for a container that does not set the field itself.
  std::vector<std::string> entrypoint, command;
  std::vector<std::string> environment;  // "KEY=VALUE"
  std::string working_directory;         // empty: "/"
};

// By an image's name in the pod, or the last part of that name without tag and digest; "": all other images. Muster's
// own images, which this machine's binaries replace, get none.
using ImageRoots = std::map<std::string, ImageRoot, std::less<>>;
const ImageRoot* RootOfImage(const ImageRoots& roots, std::string_view image);  // null: none

// "[IMAGE=]PATH", the value of a flag. A value that begins with '/' or '.' is a path, even if it contains '='.
struct ImageFlag {
  std::string image, path;
};
ImageFlag ReadImageFlag(const std::string& text);

// The folder of --image-root. InvalidArgument: `path` is not a folder that can be read; names the flag.
StatusOr<ImageRoot> ReadImageRoot(const std::string& path);

// Turns `environment` ("KEY=VALUE") of a container on this machine's files into that of one in `root`. This machine's
// PATH, HOME and LANG are dropped; the image's variables win. Defaults: the usual PATH; HOME=/tmp, since the root is
// read-only; USER=user, since the image's /etc/passwd lacks this process's user and Python's getpass asks for a name.
std::vector<std::string> EnvironmentInRoot(const std::vector<std::string>& environment, const ImageRoot& root);

}  // namespace muster::local
