// SPDX-License-Identifier: Apache-2.0
#include "base/args_from_env.h"

#include <algorithm>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::string_view kPrefix = "MUSTER_ARG_";
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";

}  // namespace

std::string ArgVariable(size_t index) { return fmt::format("{}{}", kPrefix, index); }

bool IsArgVariable(std::string_view text) {
  if (!text.starts_with(kPrefix) || text == kPrefix) return false;
  return text.find_first_not_of(kDigits, kPrefix.size()) == std::string_view::npos;
}

bool IsPlainWord(std::string_view word) {
  return !word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos;
}

std::string ExpandReferences(std::string_view text, const std::function<std::string(std::string_view name)>& value_of) {
  std::string expanded;
  const size_t last_end = text.rfind(')');
  for (size_t at = 0; at < text.size() && expanded.size() <= kLongestForPrograms;) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("$(") && last_end != std::string_view::npos && at < last_end) {
      const size_t end = rest.find(')');
      expanded += value_of(rest.substr(2, end - 2));
      at += end + 1;
    } else {
      expanded += rest.front();
      at += rest.starts_with("$$") ? 2 : 1;
    }
  }
  return expanded;
}

std::string EscapeReferences(std::string_view text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$' && i + 1 < text.size() && (text[i + 1] == '$' || text[i + 1] == '(')) escaped += '$';
    escaped += text[i];
  }
  return escaped;
}

}  // namespace muster
