// Texts on stdout and stderr.
#pragma once

#include <cstdio>
#include <utility>

#include "base/text.h"

namespace muster {

// Formats and writes. What the stream does not take is dropped, without a word: a full disk or a closed stderr changes
// neither how a program ends nor what it leaves behind. (fmt::print throws.)
template <typename... Values>
void PrintTo(std::FILE* stream, fmt::format_string<Values...> format, Values&&... values) {
  const std::string text = fmt::format(format, std::forward<Values>(values)...);
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stream));
}

}  // namespace muster
