// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD library: writes each reflink and copy_file_range to the file MUSTER_TEST_COPIES, with "ok" or its errno.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <string>

namespace {

void Note(const char* what, bool ok) {
  const int error = errno;
  const char* path = getenv("MUSTER_TEST_COPIES");
  const int log = path == nullptr ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log >= 0) {
    const std::string line = std::string(what) + " " + (ok ? "ok" : std::to_string(error)) + "\n";
    if (write(log, line.data(), line.size()) < 0) abort();
    close(log);
  }
  errno = error;
}

}  // namespace

extern "C" int ioctl(int file, unsigned long request, ...) noexcept {
  using Real = int (*)(int, unsigned long, void*);
  static const Real real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "ioctl"));
  va_list rest;
  va_start(rest, request);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  const int result = real(file, request, argument);
  if (request == FICLONE) Note("reflink", result == 0);
  return result;
}

extern "C" ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t length,
                                   unsigned flags) {
  using Real = ssize_t (*)(int, off64_t*, int, off64_t*, size_t, unsigned);
  static const Real real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "copy_file_range"));
  const ssize_t result = real(from, from_offset, to, to_offset, length, flags);
  Note("copy_file_range", result >= 0);
  return result;
}
