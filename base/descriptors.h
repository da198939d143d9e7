// SPDX-License-Identifier: Apache-2.0
// File descriptors: ownership, pipes, waiting, and the limit of open files.
#pragma once

#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/status.h"

namespace muster {

// Owns a descriptor and closes it. -1: owns none. Not thread-safe.
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
  // Returns the result of close(2), which may report the error of an earlier write. 0 if it owns no descriptor.
  int Close();
  int Release() { return std::exchange(fd_, -1); }  // the caller owns it from now on

 private:
  int fd_;
};

// A pipe. Both ends block, and are closed on exec.
struct PipeEnds {
  Descriptor reading, writing;
};
StatusOr<PipeEnds> MakePipe();

// For code without a loop: blocks until `fd` is ready for `events` (as in poll(2)) or broken. The next call on a broken
// one returns its error. False: `deadline` has passed.
bool ReadyBy(int fd, short events, TimePoint deadline);

// Enlarges a pipe's buffer, so that much data needs fewer calls. No effect if it is not a pipe or the kernel refuses.
void WidenPipe(int descriptor, int bytes);

// Opens /dev/null for each of the descriptors 0, 1 and 2 that is closed. Otherwise the next open() takes that number,
// and printed text goes into the wrong file. Call it before anything is opened. Without /dev/null they stay closed.
void FillStandardStreams();

// The number of descriptors that connections of others leave free at the moment, so that a crowd of them cannot keep
// the process from opening files. Empty: none.
using KeptDescriptors = std::function<int()>;

// Whether min(keep, limit / 2) + min(more, limit / 8) descriptors stay free after one more is opened; `limit` is ulimit
// -n, read each time, since it may change. `open_fd`: any open descriptor, which is duplicated to find the next free
// number.
bool DescriptorsLeft(int open_fd, const KeptDescriptors& keep, int more = 0);

}  // namespace muster
