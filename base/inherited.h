// SPDX-License-Identifier: Apache-2.0
// The descriptors above 2 that this process was started with: a shell's <(...), a job server's pipe, a socket of
// systemd. They are meant for the command that this process runs, not for this process.
#pragma once

#include <vector>

namespace muster {

// Records the open descriptors. Call it once, before anything is opened. Without /proc it records none.
void NoteInheritedDescriptors();

// The recorded descriptors in rising order; they stay open. Empty before NoteInheritedDescriptors().
const std::vector<int>& InheritedDescriptors();

}  // namespace muster
