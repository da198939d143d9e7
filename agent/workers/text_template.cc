// SPDX-License-Identifier: Apache-2.0
#include "agent/workers/text_template.h"

namespace muster::agent {
namespace {

bool Starts(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool Continues(char c) { return Starts(c) || (c >= '0' && c <= '9'); }

}  // namespace

std::string SafeSubstitute(std::string_view text, const std::map<std::string, std::string, std::less<>>& values) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      result += text[at++];
      continue;
    }
    if (text.substr(at, 2) == "$$") {
      result += '$';
      at += 2;
      continue;
    }
    bool braced = text.substr(at, 2) == "${";
    size_t begin = at + (braced ? 2 : 1);
    size_t end = begin;
    if (end < text.size() && Starts(text[end])) {
      while (end < text.size() && Continues(text[end])) ++end;
    }
    size_t after = braced ? end + 1 : end;
    bool whole = end > begin && (!braced || (end < text.size() && text[end] == '}'));
    auto value = whole ? values.find(text.substr(begin, end - begin)) : values.end();
    if (value != values.end()) {
      result += value->second;
      at = after;
    } else {
      result += text[at++];
    }
  }
  return result;
}

}  // namespace muster::agent
