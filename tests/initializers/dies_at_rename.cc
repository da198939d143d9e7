// LD_PRELOAD: the process is killed as it begins its MUSTER_TEST_DIE_AT_RENAME-th renameat.
#include <dlfcn.h>
#include <stdio.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

extern "C" int renameat(int from, const char* name, int to, const char* new_name) {
  using Real = int (*)(int, const char*, int, const char*);
  static const Real real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "renameat"));
  static std::atomic<int> left = [] {
    const char* text = getenv("MUSTER_TEST_DIE_AT_RENAME");
    return text == nullptr ? 0 : atoi(text);
  }();
  if (--left == 0) raise(SIGKILL);
  return real(from, name, to, new_name);
}
