// Gives a command line that only PyTorch's own launcher can serve to the real torchrun, in place of this process.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/torch/flag_reader.h"
#include "agent/torch/torch_command.h"
#include "agent/torch/torchrun_flag_table.h"
#include "base/status.h"

namespace muster::agent {

// Set for the real torchrun; where it is set already, "the real torchrun" led back here.
inline constexpr std::string_view kHandedOver = "MUSTER_HANDED_OVER";

// What of a command line only Python can do, in one phrase; nullopt: nothing. Asked before values are judged: the real
// torchrun judges its own. InvalidArgument: an empty name, which torchrun refuses too. Pure.
StatusOr<std::optional<std::string>> HandOverReason(const FlagReader& flags, bool standalone,
                                                    const std::map<std::string, std::string>& rdzv_conf);

// argv of the real launcher: torchrun, or python -m torch.distributed.launch for `muster launch`. NotFound: there is
// none on PATH but this binary; FailedPrecondition: handed over once already. Both say what to do.
StatusOr<std::vector<std::string>> HandOverCommand(const std::vector<std::string>& arguments, std::string_view reason,
                                                   bool legacy_launch, const CommandSurroundings& surroundings);

// Warns with `reason` and what is left out, and executes it. Comes back only when that fails: as above, NotFound, or
// PermissionDenied where it is there and cannot be executed.
Status HandOver(const TorchrunsPart& part, const std::string& reason, bool legacy_launch);

}  // namespace muster::agent
