// Closing what a child must not have.
#pragma once

#include <span>

namespace muster {

enum class Closing { kNow, kOnExec };

// Closes every descriptor from `first` on but those in `kept`, or marks them to be closed on exec. By system calls
// alone, without the heap: for a child between fork and exec. Where close_range(2) cannot do it (Linux before 5.9, for
// the mark before 5.11, a sandbox) /proc/self/fd lists them; where that is not there either, all numbers up to the
// limit of open files are tried, but no more than 65,536.
void CloseFrom(int first, Closing when, std::span<const int> kept = {});

}  // namespace muster
