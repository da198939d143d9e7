// Gives a command line that only PyTorch's own launcher can serve to the real torchrun, in place of this process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/torch_command.h"
#include "base/status.h"

namespace muster::agent {

// Set for the real torchrun; where it is set already, "the real torchrun" led back here.
inline constexpr std::string_view kHandedOver = "MUSTER_HANDED_OVER";

// argv of the real launcher: torchrun, or python -m torch.distributed.launch for `muster launch`. NotFound: there is
// none on PATH but this binary; FailedPrecondition: handed over once already. Both say what to do.
StatusOr<std::vector<std::string>> HandOverCommand(const std::vector<std::string>& arguments, std::string_view reason,
                                                   bool legacy_launch, const CommandSurroundings& surroundings);

// Warns with `reason` and executes it. Comes back only when that fails, with the exit code to end with (said on
// stderr).
int HandOver(const std::vector<std::string>& arguments, const std::string& reason, bool legacy_launch = false);

}  // namespace muster::agent
