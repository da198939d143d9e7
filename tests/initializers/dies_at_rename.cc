// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD library: kills the process at the start of its MUSTER_TEST_DIE_AT_RENAME-th renameat, or stops it at its
// MUSTER_TEST_STOP_AT_RENAME-th renameat or its MUSTER_TEST_STOP_AT_LINK-th linkat.
#include <dlfcn.h>
#include <stdio.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace {

int NumberOf(const char* variable) {
  const char* text = getenv(variable);
  return text == nullptr ? 0 : atoi(text);
}

}  // namespace

extern "C" int renameat(int from, const char* name, int to, const char* new_name) {
  using Real = int (*)(int, const char*, int, const char*);
  static const Real real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "renameat"));
  static const int dies = NumberOf("MUSTER_TEST_DIE_AT_RENAME"), stops = NumberOf("MUSTER_TEST_STOP_AT_RENAME");
  static std::atomic<int> number = 0;
  const int now = ++number;
  if (now == dies) raise(SIGKILL);
  if (now == stops) raise(SIGSTOP);
  return real(from, name, to, new_name);
}

extern "C" int linkat(int from, const char* name, int to, const char* new_name, int flags) {
  using Real = int (*)(int, const char*, int, const char*, int);
  static const Real real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "linkat"));
  static const int stops = NumberOf("MUSTER_TEST_STOP_AT_LINK");
  static std::atomic<int> number = 0;
  if (++number == stops) raise(SIGSTOP);
  return real(from, name, to, new_name, flags);
}
