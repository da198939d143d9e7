// SPDX-License-Identifier: Apache-2.0
// Printing to stdout and stderr.
#pragma once

#include <cstdio>
#include <utility>

#include "base/text.h"

namespace muster {

// Formats and writes. Write errors are ignored: a full disk or a closed stderr must change neither the exit code nor
// the files of a program. (fmt::print throws.)
template <typename... Values>
void PrintTo(std::FILE* stream, fmt::format_string<Values...> format, Values&&... values) {
  const std::string text = fmt::format(format, std::forward<Values>(values)...);
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stream));
}

}  // namespace muster
