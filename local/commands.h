// SPDX-License-Identifier: Apache-2.0
// The commands of `muster-local`. docs/local.md describes them for users.
//
// Exit codes: 64: a flag is wrong; 78: a name is wrong, or files cannot be read or written; else 0 or as below.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::local {

// Each adds its flags to `app`. After the parse, `run` does the work and returns the exit code of the process.

// Runs a job file. The job's code; 143 or 130 if SIGTERM or SIGINT ended the run.
void AddLocalFlags(CLI::App* app, std::function<int()>* run);  // local_command.cc
// Writes a job file to begin with.
void AddInitFlags(CLI::App* app, std::function<int()>* run);  // init_command.cc

// About jobs that run, or have run, on this machine. Each reads the state directory and prints for people.
void AddLogsFlags(CLI::App* app, std::function<int()>* run);  // logs_command.cc
void AddPsFlags(CLI::App* app, std::function<int()>* run);    // ps_command.cc
void AddStopFlags(CLI::App* app, std::function<int()>* run);  // stop_command.cc
void AddRmFlags(CLI::App* app, std::function<int()>* run);    // rm_command.cc
void AddPruneFlags(CLI::App* app, std::function<int()>* run);

}  // namespace muster::local
