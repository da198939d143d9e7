// SPDX-License-Identifier: Apache-2.0
// CLI11's side: the model of a command line that it parses, and the arguments of `completion` and `man` for it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "usage/command.h"
#include "usage/print_usage.h"

namespace muster::usage {

// Of the app and its subcommands. Its name is the command's; the type name, in which there is no colon, is the metavar.
// The values that a CLI::IsMember accepts are the choices.
Command Describe(const CLI::App& app);

void AddCompletionArguments(CLI::App* app, CompletionWords* words);
void AddManArguments(CLI::App* app, std::string* subcommand);

// Adds both as subcommands of `app`, which has all others already and outlives them. If one is given, *run afterwards
// carries it out and returns the exit code.
void AddUsageCommands(CLI::App* app, std::function<int()>* run);

}  // namespace muster::usage
