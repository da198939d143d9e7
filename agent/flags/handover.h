// SPDX-License-Identifier: Apache-2.0
// Replaces this process by the real torchrun, for a command line that only PyTorch's own launcher can serve.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/flags/flag_reader.h"
#include "agent/flags/torchrun_flag_table.h"
#include "agent/workers/torch_command.h"
#include "base/status.h"

namespace muster::agent {

// Set in the environment of the real torchrun. If it is set already, "the real torchrun" led back to this binary.
inline constexpr std::string_view kHandedOver = "MUSTER_HANDED_OVER";

// What in the command line only Python can do, in one phrase; nullopt: nothing. Asked before values are judged, since
// the real torchrun judges its own. InvalidArgument: an empty name, which torchrun refuses, too. Pure.
StatusOr<std::optional<std::string>> HandOverReason(const FlagReader& flags, bool standalone,
                                                    const std::map<std::string, std::string>& rdzv_conf);

// argv of the real launcher: torchrun, or python -m torch.distributed.launch for `muster launch`. NotFound: there is
// none on PATH except this binary; FailedPrecondition: handed over once already. Both messages say what to do.
StatusOr<std::vector<std::string>> HandOverCommand(const std::vector<std::string>& arguments, std::string_view reason,
                                                   bool legacy_launch, const CommandSurroundings& surroundings);

// Warns with `reason` and the flags that are left out, then executes the command. Returns only if that fails: the
// errors above, NotFound, or PermissionDenied if the command exists and cannot be executed.
Status HandOver(const TorchrunsPart& part, const std::string& reason, bool legacy_launch);

}  // namespace muster::agent
