// A command line in its words, as a POSIX shell splits it: blanks between, '...' as it stands, "..." where a backslash
// is before a quote or another one, and elsewhere a backslash before any character. Nothing else is special, be it a
// dollar, a tilde or a hash. As Python's shlex.split, and so the AWS CLI, has it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::initializers {

// At least one, and the first is not empty. InvalidArgument: no word at all, a quote that is not closed, a backslash at
// the end. No message shows the line: it may hold a secret.
StatusOr<std::vector<std::string>> SplitWords(std::string_view line);

}  // namespace muster::initializers
