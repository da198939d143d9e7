// SPDX-License-Identifier: Apache-2.0
#include "usage/command.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster::usage {
namespace {

bool IsLowerCase(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

std::string_view OwnName(const Command& command) {
  const std::string_view name = command.name;
  return name.substr(name.rfind(' ') + 1);
}

const Command* FindCommand(const Command& command, std::string_view own_name) {
  for (const Command& one : command.commands) {
    if (OwnName(one) == own_name) return &one;
  }
  return nullptr;
}

std::vector<std::string> WordsIn(std::string_view metavar) {
  std::vector<std::string> words;
  if (metavar.find('|') == std::string_view::npos) return words;
  for (std::string_view part : Split(metavar, '|')) {
    if (IsLowerCase(part)) words.emplace_back(part);
  }
  return words;
}

Place PlaceOf(std::string_view metavar) {
  constexpr std::pair<std::string_view, Place> kPlaces[] = {{"FILE", Place::kFile},     {"SCRIPT", Place::kFile},
                                                            {"DIR", Place::kFolder},    {"FOLDER", Place::kFolder},
                                                            {"LOGDIR", Place::kFolder}, {"COMMAND", Place::kProgram}};
  for (std::string_view part : Split(metavar, '|')) {
    part = part.substr(part.find_last_of("]=") + 1);
    for (const auto& [word, place] : kPlaces) {
      if (part == word) return place;
    }
  }
  return Place::kNone;
}

}  // namespace muster::usage
