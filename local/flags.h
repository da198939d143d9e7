// SPDX-License-Identifier: Apache-2.0
// The flags of `muster local`, as the user gave them.
#pragma once

#include <string>
#include <vector>

#include "local/overrides.h"

namespace muster::local {

struct LocalFlags {
  std::vector<std::string> files;
  Overrides overrides;
  std::string work_folder;                        // empty: the current folder
  std::vector<std::string> secrets, config_maps;  // NAME=FOLDER
  std::vector<std::string> image_roots;           // [IMAGE=]FOLDER
  std::vector<std::string> image_files;           // [IMAGE=]FILE
  std::vector<std::string> drills;
  std::string network = "auto";
  bool dry_run = false;
  bool keep = false, detach = false;
};

}  // namespace muster::local
