// SPDX-License-Identifier: Apache-2.0
// A `muster exec` whose command is torchrun itself. With --wire=torch the arguments of that torchrun are read as our
// own: no user wants as many torchruns as workers. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/flags/torchrun_flag_table.h"

namespace muster::agent {

struct InnerTorchrun {
  CalledAs called_as = CalledAs::kRun;  // kLaunch: torch.distributed.launch
  std::string launcher;                 // "torchrun", "/venv/bin/python3": RunOptions::launcher
  std::vector<std::string> arguments;   // after torchrun or the module's name
};

// "torchrun ..." or "python -m torch.distributed.run ...", in any folder; nullopt: another command.
std::optional<InnerTorchrun> FindInnerTorchrun(const CommandLine& line);

// True for another command whose words name torchrun, as `sh -c "torchrun ..."` or `env A=B torchrun ...`: wired as
// torch, each worker would start a torchrun. Cannot see what a script does; ignores the arguments of a python.
bool NamesTorchrun(const CommandLine& line);

}  // namespace muster::agent
