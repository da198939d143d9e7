// SPDX-License-Identifier: Apache-2.0
// The command lines of `muster run`, `launch` and `exec`: torchrun's, with every flag, spelling, abbreviation and PET_*
// variable, plus Muster's flags (docs/torchrun-flags.md).
//
// Rules of argparse (torch/distributed/run.py, argparse_util.py): options first, then the script, then everything else
// verbatim; dash and underscore spellings; any unique prefix; "--flag=value" and "--flag value". The command line wins
// over PET_*, that over TRAINER_*, that over the default.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/flags/flag_reader.h"
#include "agent/flags/torchrun_flag_table.h"
#include "agent/workers/run_options.h"
#include "base/host_facts.h"
#include "base/status.h"

namespace muster::agent {

struct ParsedRun {
  enum class Outcome {
    kRun,       // options are good
    kHelp,      // print `text` on stdout, end 0
    kHandOver,  // only the real torchrun can do this, `text` says why: hand `torchruns` over (handover.h)
  };
  Outcome outcome = Outcome::kRun;
  RunOptions options;    // for kHandOver only log and termination log
  size_t script_at = 0;  // place of the script among `arguments`, also after a torchrun inside
  std::string text;
  TorchrunsPart torchruns;
  std::vector<Overruled> overruled;  // not in options.warnings, which every simulated node logs
};

// `arguments` are without the program's name. InvalidArgument names the flag or variable and its value (exit code 64).
// `facts` of this machine: the number of an XGBoost job's pods may depend on them.
StatusOr<ParsedRun> ParseRun(const std::vector<std::string>& arguments, const Environment& environment,
                             CalledAs called_as = CalledAs::kRun, const HostFacts& facts = {});

}  // namespace muster::agent
