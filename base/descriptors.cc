// SPDX-License-Identifier: Apache-2.0
#include "base/descriptors.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace muster {

int Descriptor::Close() { return fd_ < 0 ? 0 : close(std::exchange(fd_, -1)); }

StatusOr<PipeEnds> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "opening a pipe");
  return PipeEnds{Descriptor(ends[0]), Descriptor(ends[1])};
}

bool ReadyBy(int fd, short events, TimePoint deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - MonotonicClock::now()).count();
    pollfd one{fd, events, 0};
    const int count = poll(&one, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (count > 0 || (count < 0 && errno != EINTR)) return true;
    if (left <= 0) return false;
  }
}

void WidenPipe(int descriptor, int bytes) { (void)fcntl(descriptor, F_SETPIPE_SZ, bytes); }

void FillStandardStreams() {
  for (int stream = 0; stream <= 2; ++stream) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    const int opened = open("/dev/null", O_RDWR);  // without O_CLOEXEC, so that children inherit it
    if (opened > stream) close(opened);            // another thread has opened `stream` meanwhile
  }
}

bool DescriptorsLeft(int open_fd, const KeptDescriptors& keep, int more) {
  rlimit limit{};
  if (!keep || getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  // The kernel gives the lowest free number, which tells how many are taken.
  int next = fcntl(open_fd, F_DUPFD_CLOEXEC, 0);
  if (next < 0) return errno != EMFILE;
  close(next);
  const rlim_t kept = std::min<rlim_t>(static_cast<rlim_t>(keep()), limit.rlim_cur / 2) +
                      std::min<rlim_t>(static_cast<rlim_t>(more), limit.rlim_cur / 8);
  return static_cast<rlim_t>(next) + kept < limit.rlim_cur;
}

}  // namespace muster
