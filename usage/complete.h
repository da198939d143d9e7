// SPDX-License-Identifier: Apache-2.0
// What may follow on a command line: the one answer for the completions of all shells. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "usage/command.h"

namespace muster::usage {

struct Candidate {
  std::string word;  // takes the place of the whole last word
  std::string help;
};

struct Answer {
  std::vector<Candidate> candidates;
  Place place = Place::kNone;  // what else the shell itself shall look for
  size_t before = 0;           // bytes of the last word in front of the path: those of "--log-dir="
};

// `words`: the command line behind the program's name. The last one is to be completed and may be empty.
Answer Complete(const Command& program, const std::vector<std::string>& words);

// Lines: place ("none", "files", "folders", "programs") and `before`, then each candidate, a tab and its help.
std::string AnswerText(const Answer& answer);

// The script that makes `shell` ("bash", "zsh", "fish") ask `program`, by `program completion for -- WORD...`, what may
// follow. Empty: not one of these shells.
std::string Script(std::string_view shell, std::string_view program);

}  // namespace muster::usage
