// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/flag_usage.h"

#include "base/text.h"

namespace muster::agent {
namespace {

usage::Flag Describe(const Flag& flag, CalledAs called_as, std::string_view heading) {
  usage::Flag described{.metavar = std::string(flag.metavar),
                        .help = std::string(flag.help),
                        .fallback = std::string(Fallback(flag, called_as)),
                        .heading = std::string(heading)};
  if (flag.letter != 0) described.names.push_back({'-', flag.letter});
  described.names.push_back(fmt::format("--{}", flag.name));
  for (std::string_view choice : Split(flag.choices, ',')) described.choices.emplace_back(choice);
  for (std::string_view variable : {flag.variable, flag.pod_variable}) {
    if (!variable.empty()) described.variables.emplace_back(variable);
  }
  return described;
}

void AddFlags(CalledAs called_as, bool own, std::string_view heading, usage::Command* command) {
  for (const Flag& flag : FlagTable()) {
    if (IsVisible(flag, called_as) && IsOwn(flag) == own) {
      command->flags.push_back(Describe(flag, called_as, heading));
    }
  }
}

}  // namespace

std::string HelpRow(const usage::Flag& flag) {
  std::string left = fmt::format("  {}", Join(flag.names, ", "));
  if (!flag.metavar.empty()) left += fmt::format(" {}", flag.metavar);
  std::string right = flag.help;
  if (!flag.choices.empty()) right += fmt::format(" ({})", Join(flag.choices, ","));
  std::vector<std::string> notes;
  if (!flag.fallback.empty()) notes.push_back(fmt::format("default {}", flag.fallback));
  notes.insert(notes.end(), flag.variables.begin(), flag.variables.end());
  if (!notes.empty()) right += fmt::format(" [{}]", Join(notes, "; "));
  return left.size() < 38 ? fmt::format("{:<38}{}\n", left, right) : fmt::format("{}\n{:38}{}\n", left, "", right);
}

usage::Command DescribeFlags(CalledAs called_as) {
  usage::Command command;
  command.wraps = command.spells_freely = true;
  if (called_as == CalledAs::kExec) {
    command.name = "muster exec";
    command.description =
        "Runs the command as the main process of a container: signals reach it, orphans are collected, its exit code "
        "is\n"
        "kept, and why it ended is said on the console and in the termination message.";
    command.operands.push_back({.metavar = "COMMAND", .help = "the command, behind --"});
    AddFlags(called_as, true, "Muster's flags", &command);
    AddFlags(called_as, false,
             "torchrun's, with --wire=torch (of the plain ones only max-restarts, log-dir, redirects, tee, role,\n"
             "log-line-prefix-template and shutdown-timeout; with --wire=jax or xgboost also nnodes, node-rank,\n"
             "rdzv-endpoint, rdzv-id and rdzv-conf)",
             &command);
    return command;
  }
  command.name = called_as == CalledAs::kLaunch ? "muster launch" : "muster run";
  command.description = "Starts the workers of this node and keeps them going together with the other nodes'.";
  command.operands.push_back({.metavar = "SCRIPT", .help = "the script; with -m a module; with --no-python a program"});
  AddFlags(called_as, false, "torchrun's flags", &command);
  AddFlags(called_as, true, "Muster's own", &command);
  return command;
}

std::string HelpText(CalledAs called_as) {
  const usage::Command command = DescribeFlags(called_as);
  std::string text = fmt::format(
      "usage: {} {}\n\n{}\n"
      "Every flag may be abbreviated and written with underscores. A variable in [brackets] replaces the default.\n",
      command.name,
      called_as == CalledAs::kExec ? "[flags] -- COMMAND [arguments]" : "[flags] script [script's arguments]",
      command.description);
  std::string_view heading;
  for (const usage::Flag& flag : command.flags) {
    if (flag.heading != heading) text += fmt::format("\n{}:\n", heading = flag.heading);
    text += HelpRow(flag);
  }
  return text;
}

}  // namespace muster::agent
