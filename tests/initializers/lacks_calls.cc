// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD library: a file system without any optional operation. Reflinks, copies by the kernel, reserved space,
// hard links, modes, locks, syncs and direct writes fail with the errno number in MUSTER_TEST_LACKS.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>

namespace {

int Lack() {
  const char* number = getenv("MUSTER_TEST_LACKS");
  errno = number == nullptr ? ENOSYS : atoi(number);
  return -1;
}

}  // namespace

extern "C" int ioctl(int file, unsigned long request, ...) noexcept {
  using Real = int (*)(int, unsigned long, void*);
  static const Real real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "ioctl"));
  va_list rest;
  va_start(rest, request);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return request == FICLONE ? Lack() : real(file, request, argument);
}

extern "C" ssize_t copy_file_range(int, off64_t*, int, off64_t*, size_t, unsigned) { return Lack(); }
extern "C" int fallocate(int, int, off_t, off_t) { return Lack(); }
extern "C" int fallocate64(int, int, off64_t, off64_t) { return Lack(); }
extern "C" int linkat(int, const char*, int, const char*, int) noexcept { return Lack(); }
extern "C" int fchmodat(int, const char*, mode_t, int) noexcept { return Lack(); }
extern "C" int flock(int, int) noexcept { return Lack(); }
extern "C" int syncfs(int) noexcept { return Lack(); }
extern "C" int fsync(int) { return Lack(); }
extern "C" int fdatasync(int) { return Lack(); }

namespace {

ssize_t WriteAt(const char* name, int file, const void* bytes, size_t length, off_t offset) {
  using Real = ssize_t (*)(int, const void*, size_t, off_t);
  static const Real real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, name));
  if ((fcntl(file, F_GETFL) & O_DIRECT) != 0) {
    errno = EINVAL;
    return -1;
  }
  return real(file, bytes, length, offset);
}

}  // namespace

extern "C" ssize_t pwrite(int file, const void* bytes, size_t length, off_t offset) {
  return WriteAt("pwrite", file, bytes, length, offset);
}
extern "C" ssize_t pwrite64(int file, const void* bytes, size_t length, off64_t offset) {
  return WriteAt("pwrite64", file, bytes, length, offset);
}
