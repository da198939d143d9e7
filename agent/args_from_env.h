// SPDX-License-Identifier: Apache-2.0
// `muster exec --args-from-env`: words of the command are in variables (base/args_from_env.h). Pure.
#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "base/status.h"

namespace muster::agent {

struct WholeCommandLine {
  std::vector<std::string> arguments;  // without the flag, and with the words themselves
  std::vector<std::string> variables;  // that had the words: programs do not need them
};

// Without the flag, the arguments as they are. With it, each word MUSTER_ARG_N of the command becomes the value of that
// variable, with $(NAME) replaced by other variables as Kubernetes does. InvalidArgument: the variable is not set.
StatusOr<WholeCommandLine> ReadArgsFromEnv(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace muster::agent
