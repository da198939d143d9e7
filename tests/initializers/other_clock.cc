// LD_PRELOAD: the wall clock is MUSTER_TEST_CLOCK_OFFSET seconds off; every other clock and all timers are as they are.
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

#include <cstdlib>

namespace {

long Offset() {
  static const long offset = [] {
    const char* text = getenv("MUSTER_TEST_CLOCK_OFFSET");
    return text == nullptr ? 0L : atol(text);
  }();
  return offset;
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
