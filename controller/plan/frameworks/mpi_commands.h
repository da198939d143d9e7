// SPDX-License-Identifier: Apache-2.0
// What the commands of an MPI runtime say about ssh: whether `muster rsh` can take its place. Pure; untrusted input;
// linear.
#pragma once

#include "base/json_fields.h"

namespace muster::controller {

// Whether a container does nothing but serve ssh: its command is sshd, a program that is given sshd (an entrypoint), or
// a shell's script that prepares and starts it (folders, keys). False: the script does more, which would be lost.
bool OnlyServesSsh(const Json& container);

// Whether a container's command, or its script, calls ssh, scp or sftp by itself, gives it options (plm_rsh_args), or
// calls a launcher that does: deepspeed, horovodrun, mpirun_rsh, pdsh.
bool CallsSsh(const Json& container);

}  // namespace muster::controller
