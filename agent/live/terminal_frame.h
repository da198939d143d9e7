// SPDX-License-Identifier: Apache-2.0
// A picture of a terminal: lines of coloured text. All text in it has passed the filter of terminal_text.h, since there
// is no other way into a Line. Passive values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

enum class Ink { kPlain, kDim, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan };

struct Style {
  Ink ink = Ink::kPlain;
  bool bold = false;
  bool reverse = false;
  bool operator==(const Style&) const = default;
};

struct Span {
  std::string text;
  Style style;
  bool operator==(const Span&) const = default;
};

class Line {
 public:
  explicit Line(size_t width) : width_(width) {}  // columns that it may take

  // Appends as much of `text` as there is room for; what does not fit is cut with "…".
  Line& Add(std::string_view text, Style style = {});
  // Appends a cell of exactly `columns` columns, if there is room for it: `text`, cut or filled up with blanks.
  enum class Side { kLeft, kRight };
  Line& Cell(std::string_view text, size_t columns, Side side = Side::kLeft, Style style = {});
  // Fills the line up and shows all of it in reverse.
  void Select();

  const std::vector<Span>& spans() const { return spans_; }
  size_t columns() const { return columns_; }
  size_t room() const { return width_ - columns_; }
  // Without styles and without blanks at the end.
  std::string Text() const;
  bool operator==(const Line&) const = default;

 private:
  void Put(std::string text, size_t columns, Style style);

  size_t width_;
  size_t columns_ = 0;
  std::vector<Span> spans_;
};

struct Size {
  size_t rows = 24;
  size_t columns = 80;
  bool operator==(const Size&) const = default;
};

struct Picture {
  Size size;
  std::vector<Line> lines;  // at most size.rows, each at most size.columns wide
};

// What a terminal shows, so that only the lines that differ are sent. Not thread-safe.
class Screen {
 public:
  struct Options {
    bool colours = true;  // false: bold and reverse alone
    bool ascii = false;
  };
  explicit Screen(Options options) : options_(options) {}

  // The bytes that make the terminal show `picture`; empty: it shows it already.
  std::string Draw(const Picture& picture);
  // The terminal may show anything now: the next Draw() clears it.
  void Forget() { known_ = false; }

 private:
  std::string Bytes(const Line& line) const;

  const Options options_;
  bool known_ = false;
  Size size_;
  std::vector<std::string> shown_;  // bytes of each line
};

}  // namespace muster::agent
