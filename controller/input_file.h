// SPDX-License-Identifier: Apache-2.0
// Reads files that a user names on the command line.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "controller/plan/file_objects.h"

namespace muster::controller {

// Read whole files. "-" is stdin. An error names the file: it cannot be read, or it has more than 64 MiB.
StatusOr<InputFile> ReadInput(const std::string& name);
// A folder stands for its .yaml, .yml and .json files, in the order of their names.
StatusOr<std::vector<InputFile>> ReadInputs(const std::vector<std::string>& names);

}  // namespace muster::controller
