// The descriptors above 2 that this process was started with: a shell's <(...), a job server's pipe, a socket that
// systemd made. They are for the command that it runs, not for it.
#pragma once

#include <vector>

namespace muster {

// Looks, once: before anything else is opened. Without a /proc there are none.
void NoteInheritedDescriptors();

// In rising order; they stay open. Empty before NoteInheritedDescriptors().
const std::vector<int>& InheritedDescriptors();

}  // namespace muster
