// For a process that starts in a moment and then serves for weeks.
#pragma once

namespace muster {

// Lets go of the pages of code and constants that this process has mapped so far: the kernel maps sixteen for each one
// that is touched, and most belong to what only the start runs. They count as the process's memory (RSS) until then.
// What is still needed is mapped again from the page cache when it is touched, some microseconds for all of it. Best
// effort; from any thread.
void DropStartupPages();

}  // namespace muster
