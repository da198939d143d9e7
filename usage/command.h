// SPDX-License-Identifier: Apache-2.0
// What a program's command line may be: the one model of which its completion and its manual are made. Passive data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::usage {

// A flag; without names an operand: a word that stands for itself, as a file to read.
struct Flag {
  std::vector<std::string> names;  // as typed: "-f", "--filename"
  // Stands for the value, as "FILE". A flag without one takes no value; an operand SUBCOMMAND is one of the program.
  std::string metavar;
  std::vector<std::string> choices;         // words that the value may be; empty: those that the metavar names
  std::string help;                         // one line; names in `quotes`
  std::string fallback;                     // the value without the flag; empty: it needs no mention
  std::vector<std::string> variables = {};  // environment variables that replace `fallback`
  std::string heading = {};                 // of a group of flags, the same on each
};

struct Command {
  std::string name;         // "muster run"
  std::string summary;      // one line
  std::string description;  // more lines; an empty one begins a paragraph
  std::vector<Flag> flags;
  std::vector<Flag> operands;  // in their order; more words than these are taken as the last one
  bool wraps = false;          // the first operand ends the flags; words behind it belong to the program that it names
  bool spells_freely = false;  // flags may be abbreviated, and written with underscores
  std::vector<Command> commands;
};

// The last word of a command's name: "run".
std::string_view OwnName(const Command& command);
// The subcommand of that name; nullptr: there is none.
const Command* FindCommand(const Command& command, std::string_view own_name);

// The words that a metavar such as "N|auto|gpu" or "[HOST:]PORT|off" names: its alternatives in lower case.
std::vector<std::string> WordsIn(std::string_view metavar);

// What a value is, by its metavar.
enum class Place { kNone, kFile, kFolder, kProgram };
// By the words FILE, SCRIPT, DIR, FOLDER, LOGDIR and COMMAND among the alternatives, also as in "NAME=FOLDER" and
// "[IMAGE=]FILE".
Place PlaceOf(std::string_view metavar);

}  // namespace muster::usage
