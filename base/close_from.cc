// SPDX-License-Identifier: Apache-2.0
#include "base/close_from.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>

namespace muster {
namespace {

constexpr rlim_t kMostNumbers = 65'536;

bool IsKept(std::span<const int> kept, int fd) { return std::find(kept.begin(), kept.end(), fd) != kept.end(); }

void CloseOne(int fd, Closing when) {
  if (when == Closing::kNow) {
    close(fd);
  } else {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

// One call for each range between kept descriptors.
bool CloseByRange(int first, Closing when, std::span<const int> kept) {
  const unsigned flags = when == Closing::kOnExec ? CLOSE_RANGE_CLOEXEC : 0;
  for (auto from = static_cast<unsigned>(first);;) {
    unsigned next = UINT_MAX;  // the lowest kept descriptor from `from` on
    for (int fd : kept) {
      if (fd >= 0 && static_cast<unsigned>(fd) >= from) next = std::min(next, static_cast<unsigned>(fd));
    }
    const unsigned last = next == UINT_MAX ? UINT_MAX : next - 1;
    if (next != from && close_range(from, last, static_cast<int>(flags)) != 0) return false;
    if (next == UINT_MAX) return true;
    from = next + 1;
  }
}

// The kernel lists descriptors in rising order and goes on after the last one returned, so closing them skips none.
bool CloseByListing(int first, Closing when, std::span<const int> kept) {
  const int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  alignas(dirent64) char buffer[2048];
  ssize_t got = 0;
  while ((got = getdents64(folder, buffer, sizeof buffer)) > 0) {
    for (ssize_t at = 0; at < got;) {
      unsigned short length = 0;
      memcpy(&length, buffer + at + offsetof(dirent64, d_reclen), sizeof length);
      int fd = 0;
      const char* digit = buffer + at + offsetof(dirent64, d_name);
      for (; *digit >= '0' && *digit <= '9'; ++digit) fd = fd * 10 + (*digit - '0');
      const bool number = *digit == 0;  // not "." and ".."
      if (number && fd >= first && fd != folder && !IsKept(kept, fd)) CloseOne(fd, when);
      at += length;
    }
  }
  close(folder);
  return got == 0;
}

}  // namespace

void CloseFrom(int first, Closing when, std::span<const int> kept) {
  if (CloseByRange(first, when, kept) || CloseByListing(first, when, kept)) return;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = kMostNumbers;
  const int end = static_cast<int>(std::min(limit.rlim_cur, kMostNumbers));
  for (int fd = first; fd < end; ++fd) {
    if (!IsKept(kept, fd)) CloseOne(fd, when);
  }
}

}  // namespace muster
