// File descriptors: owning one, and how many this process may still open.
#pragma once

#include <utility>

#include "base/clock.h"
#include "base/status.h"

namespace muster {

// Closes what it owns. -1: nothing. Not thread-safe.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = other.Release();
    }
    return *this;
  }
  ~Descriptor() { Close(); }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  // What close(2) gives: where the last error of a write is told. 0 where there is nothing.
  int Close();
  int Release() { return std::exchange(fd_, -1); }  // somebody else's from now on

 private:
  int fd_;
};

// A pipe. Both ends block, and are closed on exec.
struct PipeEnds {
  Descriptor reading, writing;
};
StatusOr<PipeEnds> MakePipe();

// Waits, for what has no loop: true when `fd` is ready for `events` (poll(2)'s) or broken, as the next call on it says;
// false at the deadline.
bool ReadyBy(int fd, short events, TimePoint deadline);

// Fewer turns for those who move much through a pipe. What is no pipe, or may not have so many bytes, stays as it is.
void WidenPipe(int descriptor, int bytes);

// Opens /dev/null for those of 0, 1 and 2 that are closed: else the next descriptor we open takes the number, and what
// is printed goes into it. Before anything is opened. Where there is no /dev/null they stay closed.
void FillStandardStreams();

// True while at least `keep` descriptors, but never more than `1 / most` of what ulimit -n allows, stay free after one
// more is opened. `open_fd`: any open one, to ask with. Two system calls: the limit may change at any time.
bool DescriptorsLeft(int open_fd, int keep, int most);

}  // namespace muster
