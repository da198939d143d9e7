// `muster ps`, `muster logs`, `muster stop`, `muster rm` and `muster prune`: commands about jobs that run, or have run,
// on this machine. Each reads the state directory and prints for people.
//
// Exit codes: 64: a flag is wrong; 78: a name is wrong, or files cannot be read.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::local {

// Each adds its flags to `app`. The parse sets `run`.
void AddLogsFlags(CLI::App* app, std::function<int()>* run);  // logs_command.cc
void AddPsFlags(CLI::App* app, std::function<int()>* run);    // ps_command.cc
void AddStopFlags(CLI::App* app, std::function<int()>* run);  // stop_command.cc
void AddRmFlags(CLI::App* app, std::function<int()>* run);    // rm_command.cc
void AddPruneFlags(CLI::App* app, std::function<int()>* run);

}  // namespace muster::local
