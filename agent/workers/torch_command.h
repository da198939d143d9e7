// SPDX-License-Identifier: Apache-2.0
// The command line of a worker, as torchrun builds it (config_from_args of torch/distributed/run.py).
//
//   script           PYTHON -u script args
//   -m               PYTHON -u -m module args
//   --no-python      script args
//   --run-path       PYTHON -u -c "<runpy.run_path>" script args
//   muster launch    ... script --local-rank=N args, unless --use-env
// "${local_rank}" in an argument is replaced; "$$" is "$"; any other "$x" stays.
// --numa-binding puts "numactl --physcpubind=..." in front (numa_binding.h).
#pragma once

#include <string>
#include <vector>

#include "agent/workers/run_options.h"
#include "base/environment.h"
#include "base/host_fs.h"
#include "base/status.h"

namespace muster::agent {

// What the choice of commands depends on.
struct CommandSurroundings {
  HostFs fs;
  Environment environment;
  std::string self = "/proc/self/exe";  // this binary; links to it are not the real torchrun
  std::vector<int> usable_cpus;
};
CommandSurroundings RealSurroundings();

// The real torchrun: the first on PATH that is neither this binary nor a link to it; empty: none.
std::string FindRealTorchrun(const CommandSurroundings& surroundings);

// The python that torchrun would use, the first of: PYTHON_EXEC; the launcher itself, if it is a python; the one in the
// head of the launcher (script_head.h), a torchrun other than this binary; python3; python. NotFound if there is none.
StatusOr<std::string> FindPython(const CommandSurroundings& surroundings, std::string_view launcher = "torchrun");

// argv of one worker. NotFound: no python, or no numactl.
StatusOr<std::vector<std::string>> WorkerCommand(const RunOptions& options, int local_rank,
                                                 const CommandSurroundings& surroundings = RealSurroundings());

}  // namespace muster::agent
