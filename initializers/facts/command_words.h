// SPDX-License-Identifier: Apache-2.0
// Splits a command line into words as a POSIX shell does: blanks separate words; '...' is taken literally; in "..." a
// backslash escapes a quote or a backslash; elsewhere a backslash escapes any character. Nothing else is special: not a
// dollar, a tilde or a hash. Python's shlex.split, and therefore the AWS CLI, has the same rules. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::initializers {

// Returns at least one word; the first is not empty. InvalidArgument: there is no word, a quote is not closed, or the
// line ends with a backslash. No message shows the line: it may hold a secret.
StatusOr<std::vector<std::string>> SplitWords(std::string_view line);

}  // namespace muster::initializers
