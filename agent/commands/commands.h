// SPDX-License-Identifier: Apache-2.0
// The subcommands of `muster`, one file each.
#pragma once

#include <string>
#include <vector>

#include "usage/command.h"

namespace muster::agent {

// What a subcommand is called for: to carry out the arguments behind its name, or only to describe its command line.
struct Call {
  std::vector<std::string> arguments;
  usage::Command* description = nullptr;  // filled in, if given, and nothing else is done
};

// Each returns the exit code.
int ExecCommand(const Call& call);         // run_command.cc
int RunCommand(const Call& call);          // run_command.cc
int LaunchCommand(const Call& call);       // run_command.cc
int CheckCommand(const Call& call);        // check_command.cc
int CoordinatorCommand(const Call& call);  // coordinator_command.cc
int ReportCommand(const Call& call);       // report_command.cc
int RshCommand(const Call& call);          // rsh_command.cc
int StatusCommand(const Call& call);       // status_command.cc
int StoreCommand(const Call& call);        // store_command.cc
int StacksCommand(const Call& call);       // stacks_command.cc
int TopCommand(const Call& call);          // top_command.cc
int InstallCommand(const Call& call);      // install_command.cc
int WaitCommand(const Call& call);         // wait_command.cc
int VersionCommand(const Call& call);      // version_command.cc

}  // namespace muster::agent
