// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD library: shifts the wall clock by MUSTER_TEST_CLOCK_OFFSET seconds. If the variable is an absolute path,
// each call reads the offset from that file. Other clocks and all timers are unchanged.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace {

long OffsetIn(const char* path) {
  char text[32] = {};
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  return size > 0 ? atol(text) : 0L;
}

long Offset() {
  static const char* const text = getenv("MUSTER_TEST_CLOCK_OFFSET");
  if (text == nullptr) return 0;
  return *text == '/' ? OffsetIn(text) : atol(text);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) {
  using Real = int (*)(clockid_t, timespec*);
  static const Real real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += Offset();
  return result;
}

time_t time(time_t* also) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (also != nullptr) *also = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(timeval* result, void*) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *result = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

}  // extern "C"
