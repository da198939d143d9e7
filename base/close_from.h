// SPDX-License-Identifier: Apache-2.0
// Closes the descriptors that a child process must not inherit.
#pragma once

#include <span>

namespace muster {

enum class Closing { kNow, kOnExec };

// Closes every descriptor from `first` on except those in `kept`, or marks them close-on-exec. Uses system calls only
// and no heap, so a child may call it between fork and exec. Where close_range(2) is missing (Linux before 5.9,
// close-on-exec before 5.11, some sandboxes), it takes the descriptors from /proc/self/fd; without /proc it tries all
// numbers up to the limit of open files, at most 65,536.
void CloseFrom(int first, Closing when, std::span<const int> kept = {});

}  // namespace muster
