// SPDX-License-Identifier: Apache-2.0
// Small parts of a page: figures, warnings, lists, commands, facts. Each takes plain values and gives HTML; all texts
// are escaped here. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

// A panel with a heading of level 2; "" if `html` is empty. `half`: two of them stand side by side where there is room.
std::string Panel(std::string_view title, std::string_view html, bool half = false);
// The heading and the content of a panel whose element is there already.
std::string PanelContent(std::string_view title, std::string_view html);

// A figure with its name. `share`, 0 to 1, is drawn as a bar below.
struct Tile {
  std::string name, value, note;
  std::optional<double> share = std::nullopt;
};
std::string Tiles(std::span<const Tile> tiles);

// What needs the reader's eye. `severe`: a failure, not only a suspicion.
struct PageWarning {
  std::string text;
  bool severe = false;
};
std::string Warnings(std::span<const PageWarning> warnings);

// A command to copy. One click selects it; the script of a live page adds a button.
struct Command {
  std::string what;  // one sentence: what it shows
  std::string line;
};
std::string Commands(std::span<const Command> commands);

// A name and a value. An empty value is left out.
struct Fact {
  std::string name, value;
};
std::string Facts(std::span<const Fact> facts);

// "a", "b" as items of a list of paths, at most `most`; the others are counted as `noun`.
std::string PathList(std::span<const std::string> paths, size_t most, std::string_view noun);

// A word for a shell: quoted if it has other characters than letters, digits and %+,-./:=@_.
std::string ShellWord(std::string_view word);

}  // namespace muster::agent
