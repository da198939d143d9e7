// SPDX-License-Identifier: Apache-2.0
#include "agent/progress/last_line.h"

#include "base/text.h"
#include "base/utf8.h"
#include "base/visible_text.h"

namespace muster::agent {

void LastLine::Add(std::string_view bytes, TimePoint now) {
  if (bytes.empty()) return;
  came_ = now;
  if (bytes.size() >= kKept) {
    end_ = bytes.substr(bytes.size() - kKept);
    return;
  }
  end_ += bytes;
  if (end_.size() > 2 * kKept) end_.erase(0, end_.size() - kKept);
}

std::string LastLine::Text(size_t most) const {
  std::string_view rest = end_;
  while (!rest.empty()) {
    const size_t before = rest.find_last_of("\r\n");
    const std::string_view line = before == std::string_view::npos ? rest : rest.substr(before + 1);
    const std::string shown = VisibleText(line);
    if (const std::string_view text = Strip(shown); !text.empty()) return std::string(Beginning(text, most));
    rest = before == std::string_view::npos ? "" : rest.substr(0, before);
  }
  return "";
}

}  // namespace muster::agent
