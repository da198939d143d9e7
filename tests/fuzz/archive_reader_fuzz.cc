// SPDX-License-Identifier: Apache-2.0
// libFuzzer: archives for --extract. Every path that the reader returns is below the target, whatever the bytes are.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "initializers/archives/archive_reader.h"
#include "initializers/facts/entry_path.h"

using muster::initializers::ArchiveReader;
using muster::initializers::CheckEntryPath;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int kMostMembers = 100;
  constexpr size_t kMostBytes = 1 << 20;
  muster::Descriptor file(memfd_create("fuzz", MFD_CLOEXEC));
  if (write(file.get(), data, size) != static_cast<ssize_t>(size) || lseek(file.get(), 0, SEEK_SET) != 0) return 0;
  muster::initializers::WindowLimits windows;
  auto reader = ArchiveReader::Open(std::move(file), "fuzz.tar", windows);
  if (!reader.ok()) return 0;
  char buffer[4096];
  size_t read = 0;
  for (int i = 0; i < kMostMembers; ++i) {
    auto member = (*reader)->Next([](std::string_view) { return true; });
    if (!member.ok() || !*member) return 0;
    if (!CheckEntryPath((*member)->path).ok()) std::abort();
    if ((*member)->target.starts_with('/') || (*member)->target.starts_with("../")) std::abort();
    while (read < kMostBytes) {
      auto got = (*reader)->Read(buffer, sizeof buffer);
      if (!got.ok()) return 0;
      if (*got == 0) break;
      read += *got;
    }
  }
  return 0;
}
