// SPDX-License-Identifier: Apache-2.0
// What the commands `completion` and `man` of each program print.
#pragma once

#include <string>
#include <vector>

#include "usage/command.h"

namespace muster::usage {

// The words about the two commands, for those who declare their arguments.
inline constexpr char kCompletionSummary[] = "print the completion script of a shell: bash, zsh or fish";
inline constexpr char kShells[] = "bash|zsh|fish|for";
inline constexpr char kShellHelp[] =
    "the shell; or `for`: print what may follow the words after --, as the scripts ask";
inline constexpr char kWordHelp[] = "the words of a command line behind `for --`";
inline constexpr char kManSummary[] = "print the manual page of this program or of a subcommand, for man";
inline constexpr char kSubcommandHelp[] = "the subcommand; else the program itself";

// `completion SHELL`, or `completion for -- WORD...`: what may follow these words, which the scripts ask.
struct CompletionWords {
  std::string shell;
  std::vector<std::string> words;
};
// Prints; returns the exit code: 64 if there is no script for that shell.
int PrintCompletion(const Command& program, const CompletionWords& words);

// `man [SUBCOMMAND]`: prints the page; returns the exit code: 64 if there is no such subcommand.
int PrintManual(const Command& program, const std::string& subcommand);

}  // namespace muster::usage
