// SPDX-License-Identifier: Apache-2.0
#include "controller/api/yaml_blocks.h"

#include <algorithm>
#include <optional>

namespace muster::controller {
namespace {

constexpr size_t kMostShift = 64;  // bounds what is added; nobody writes more blanks between dash and anchor

size_t SpacesBefore(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

std::string_view WithoutBlanksBehind(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);  // npos + 1 is 0
}

// Takes the last word off `text`; empty: there is none.
std::string_view TakeLastWord(std::string_view* text) {
  *text = WithoutBlanksBehind(*text);
  const size_t blank = text->find_last_of(" \t");
  const size_t begin = blank == std::string_view::npos ? 0 : blank + 1;
  const std::string_view word = text->substr(begin);
  *text = WithoutBlanksBehind(text->substr(0, begin));
  return word;
}

struct Block {
  int parent = 0;                // the indentation that its lines exceed; -1: none
  std::optional<size_t> indent;  // of its lines; nullopt: the first line that is not empty decides
  size_t shift = 0;              // spaces that each line gets
};

// The block scalar that begins in the line; nullopt: none does.
std::optional<Block> BlockBehind(std::string_view line) {
  size_t at = SpacesBefore(line);
  int dash = -1;
  while (at + 1 < line.size() && line[at] == '-' && line[at + 1] == ' ') {
    dash = static_cast<int>(at);
    at = std::min(line.find_first_not_of(' ', at + 1), line.size());
  }
  std::string_view rest = line.substr(at);
  rest = rest.substr(0, std::min(rest.find(" #"), rest.size()));
  const std::string_view header = TakeLastWord(&rest);
  if (header.empty() || (header[0] != '|' && header[0] != '>')) return std::nullopt;
  if (header.find_first_not_of("+-123456789", 1) != std::string_view::npos) return std::nullopt;
  bool has_properties = false;
  while (!rest.empty()) {
    std::string_view before = rest;
    const std::string_view word = TakeLastWord(&before);
    if (word[0] != '&' && word[0] != '!') break;
    has_properties = true;
    rest = before;
  }
  const bool is_item = rest.empty();
  if (!is_item && !rest.ends_with(':')) return std::nullopt;  // "a | b"
  Block block{.parent = is_item ? dash : static_cast<int>(at)};
  if (is_item && dash >= 0 && has_properties) block.shift = std::min(at - static_cast<size_t>(dash), kMostShift);
  const size_t digit = header.find_first_of("123456789");
  if (digit != std::string_view::npos) block.indent = static_cast<size_t>(block.parent + (header[digit] - '0'));
  return block;
}

// Whether the line belongs to the block. Settles its indentation.
bool Continues(std::string_view line, Block* block) {
  const size_t spaces = SpacesBefore(line);
  if (WithoutBlanksBehind(line).empty()) return true;
  if (!block->indent) {
    if (static_cast<int>(spaces) <= block->parent) return false;
    block->indent = spaces;
  }
  return spaces >= *block->indent;
}

}  // namespace

std::string WithBlocksFurtherRight(std::string_view text) {
  std::string made;
  made.reserve(text.size());
  std::optional<Block> block;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (block && !Continues(line, &*block)) block.reset();
    if (!block) {
      block = BlockBehind(line);
    } else if (block->indent && SpacesBefore(line) >= *block->indent) {
      made.append(block->shift, ' ');
    }
    made += line;
    text.remove_prefix(end);
    if (!text.empty()) {
      made += '\n';
      text.remove_prefix(1);
    }
  }
  return made;
}

}  // namespace muster::controller
