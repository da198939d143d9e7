// The command of a `muster exec` that is torchrun itself. Wired as torch its arguments are read as our own: nobody
// means as many torchruns as workers. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/torch/torchrun_flag_table.h"

namespace muster::agent {

struct InnerTorchrun {
  CalledAs called_as = CalledAs::kRun;  // kLaunch: torch.distributed.launch
  std::string launcher;                 // "torchrun", "/venv/bin/python3": RunOptions::launcher
  std::vector<std::string> arguments;   // behind torchrun or the module's name
};

// "torchrun ..." or "python -m torch.distributed.run ...", wherever they lie; nullopt: another command.
std::optional<InnerTorchrun> FindInnerTorchrun(const CommandLine& line);

// Another command whose words name torchrun, as in `sh -c "torchrun ..."` or `env A=B torchrun ...`: wired as torch
// each worker would start one. What a script does inside cannot be seen; a python's arguments are its own.
bool NamesTorchrun(const CommandLine& line);

}  // namespace muster::agent
