// SPDX-License-Identifier: Apache-2.0
// A program with everything that a command line of Muster has.
#pragma once

#include "usage/command.h"

namespace muster::usage {

inline Command SomeProgram() {
  Command run{.name = "prog run", .summary = "run a script", .wraps = true, .spells_freely = true};
  run.flags = {{{"-h", "--help"}, "", {}, "show this text", ""},
               {{"--node-rank"}, "N", {}, "rank of this node", "0", {"PET_NODE_RANK"}},
               {{"--nproc-per-node"}, "N|auto|gpu", {}, "workers", "1"},
               {{"-m", "--module"}, "", {}, "the script is a module", ""},
               {{"-r", "--redirects"}, "STREAMS", {}, "streams", "0"},
               {{"--policy"}, "POLICY", {"never", "always"}, "when to start again", ""},
               {{"--log-dir"}, "DIR", {}, "folder for logs", ""},
               {{"--secret"}, "NAME=FOLDER", {}, "a Secret", ""},
               {{"--check"}, "COMMAND|builtin", {}, "what must end with 0", ""}};
  run.operands = {{.metavar = "SCRIPT", .help = "the script"}};
  Command exec{.name = "prog exec", .summary = "run a command", .wraps = true};
  exec.operands = {{.metavar = "COMMAND", .help = "the command"}};
  Command wait{.name = "prog wait", .summary = "wait for targets"};
  wait.flags = {{{"--tcp"}, "", {}, "until the port\nis open", ""}, {{"--timeout"}, "TEXT", {}, "limit", "300s"}};
  wait.operands = {{.metavar = "TARGET", .help = "a host"}};
  Command list{.name = "prog list", .summary = "list jobs"};
  list.flags = {{{"--json"}, "", {}, "as JSON", ""}};
  Command man{.name = "prog man", .summary = "print the manual"};
  man.operands = {{.metavar = "SUBCOMMAND", .help = "the subcommand"}};
  return {.name = "prog", .summary = "a program", .commands = {run, exec, wait, list, man}};
}

}  // namespace muster::usage
