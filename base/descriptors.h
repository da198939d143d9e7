// How many file descriptors this process may still open.
#pragma once

namespace muster {

// True while at least `keep` descriptors, but never more than `1 / most` of what ulimit -n allows, stay free after one
// more is opened. `open_fd`: any open one, to ask with. Two system calls: the limit may change at any time.
bool DescriptorsLeft(int open_fd, int keep, int most);

}  // namespace muster
