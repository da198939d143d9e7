// The subcommands of `muster`, one file each: arguments after the subcommand's name in, exit code out.
#pragma once

#include <string>
#include <vector>

namespace muster::agent {

int ExecCommand(const std::vector<std::string>& arguments);         // run_command.cc
int RunCommand(const std::vector<std::string>& arguments);          // run_command.cc
int LaunchCommand(const std::vector<std::string>& arguments);       // run_command.cc
int CheckCommand(const std::vector<std::string>& arguments);        // check_command.cc
int CoordinatorCommand(const std::vector<std::string>& arguments);  // coordinator_command.cc
int ReportCommand(const std::vector<std::string>& arguments);       // report_command.cc
int RshCommand(const std::vector<std::string>& arguments);          // rsh_command.cc
int StatusCommand(const std::vector<std::string>& arguments);       // status_command.cc
int StoreCommand(const std::vector<std::string>& arguments);        // store_command.cc
int StacksCommand(const std::vector<std::string>& arguments);       // stacks_command.cc
int InstallCommand(const std::vector<std::string>& arguments);      // install_command.cc
int WaitCommand(const std::vector<std::string>& arguments);         // wait_command.cc
int VersionCommand(const std::vector<std::string>& arguments);      // version_command.cc

}  // namespace muster::agent
