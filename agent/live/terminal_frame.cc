// SPDX-License-Identifier: Apache-2.0
#include "agent/live/terminal_frame.h"

#include "agent/live/terminal_text.h"
#include "base/text.h"

namespace muster::agent {
namespace {

int ColourCode(Ink ink) {
  switch (ink) {
    case Ink::kPlain:
      return 39;
    case Ink::kDim:
      return 90;
    case Ink::kRed:
      return 31;
    case Ink::kGreen:
      return 32;
    case Ink::kYellow:
      return 33;
    case Ink::kBlue:
      return 34;
    case Ink::kMagenta:
      return 35;
    case Ink::kCyan:
      return 36;
  }
  return 39;
}

}  // namespace

void Line::Put(std::string text, size_t columns, Style style) {
  columns_ += columns;
  if (!spans_.empty() && spans_.back().style == style) {
    spans_.back().text += text;
  } else if (!text.empty()) {
    spans_.push_back({std::move(text), style});
  }
}

Line& Line::Add(std::string_view text, Style style) {
  ShownText shown = Cut(text, room());
  Put(std::move(shown.text), shown.columns, style);
  return *this;
}

Line& Line::Cell(std::string_view text, size_t columns, Side side, Style style) {
  if (columns > room()) return *this;
  ShownText shown = Cut(text, columns);
  const std::string blanks(columns - shown.columns, ' ');
  Put(side == Side::kRight ? blanks + shown.text : shown.text + blanks, columns, style);
  return *this;
}

void Line::Select() {
  Put(std::string(room(), ' '), room(), {});
  for (Span& span : spans_) span.style.reverse = true;
}

std::string Line::Text() const {
  std::string text;
  for (const Span& span : spans_) text += span.text;
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string Screen::Bytes(const Line& line) const {
  std::string bytes;
  for (const Span& span : line.spans()) {
    const bool coloured = options_.colours && span.style.ink != Ink::kPlain;
    const bool styled = coloured || span.style.bold || span.style.reverse;
    if (span.style.bold) bytes += "\x1b[1m";
    if (span.style.reverse) bytes += "\x1b[7m";
    if (coloured) bytes += fmt::format("\x1b[{}m", ColourCode(span.style.ink));
    bytes += options_.ascii ? InAscii(span.text) : span.text;
    if (styled) bytes += "\x1b[0m";
  }
  return bytes;
}

std::string Screen::Draw(const Picture& picture) {
  std::string bytes;
  if (!known_ || size_ != picture.size) {
    bytes = "\x1b[0m\x1b[2J";
    shown_.assign(picture.size.rows, "");
    size_ = picture.size;
    known_ = true;
  }
  for (size_t row = 0; row < shown_.size(); ++row) {
    std::string wanted = row < picture.lines.size() ? Bytes(picture.lines[row]) : "";
    if (wanted == shown_[row]) continue;
    bytes += fmt::format("\x1b[{};1H{}\x1b[K", row + 1, wanted);
    shown_[row] = std::move(wanted);
  }
  return bytes;
}

}  // namespace muster::agent
