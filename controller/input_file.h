// A file that a user names on the command line.
#pragma once

#include <string>

#include "base/status.h"
#include "controller/plan/plan_files.h"

namespace muster::controller {

// "-" is stdin. The error names the file: it cannot be read, or it has more than 64 MiB.
StatusOr<InputFile> ReadInput(const std::string& name);

}  // namespace muster::controller
