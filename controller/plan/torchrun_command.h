// SPDX-License-Identifier: Apache-2.0
// Tells from the words of a container's command whether it is torchrun. Pure.
#pragma once

#include "base/json_fields.h"

namespace muster::controller {

enum class Torchrun {
  kNone,    // another command, or a script, whose content is unknown
  kByPath,  // `torchrun`, found in PATH (perhaps by a shell), so it is Muster's; or the command is muster already
  kDirect   // /opt/conda/bin/torchrun, python -m torch.distributed.run: needs `muster exec --wire=torch`
};

// Under a login shell the result is kNone: the shell sets PATH anew, so its torchrun is the image's.
Torchrun TorchrunOf(const Json& container);

}  // namespace muster::controller
