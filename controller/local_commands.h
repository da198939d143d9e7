// What is asked of jobs that run, or have run, on this machine: `muster ps` and others. Each reads the state directory
// and prints for people.
//
// Exit codes: 64 where a flag is wrong, 78 where a name is, or what is on the disk cannot be read.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::controller {

// Each adds its flags; `run` is set by the parsing.
void AddLogsFlags(CLI::App* app, std::function<int()>* run);  // logs_command.cc
void AddPsFlags(CLI::App* app, std::function<int()>* run);    // ps_command.cc
void AddStopFlags(CLI::App* app, std::function<int()>* run);  // stop_command.cc

}  // namespace muster::controller
