// Whether a container's command is torchrun, as far as its words say. Pure.
#pragma once

#include "base/json_fields.h"

namespace muster::controller {

enum class Torchrun {
  kNone,    // another command, or a script inside which nobody sees
  kByPath,  // `torchrun` is looked up in PATH, perhaps by a shell: it is Muster's. Or the command is Muster already
  kDirect   // /opt/conda/bin/torchrun, python -m torch.distributed.run: `muster exec --wire=torch` takes its place
};

// A login shell sets PATH anew, so its torchrun is the image's: kNone.
Torchrun TorchrunOf(const Json& container);

}  // namespace muster::controller
