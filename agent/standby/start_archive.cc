// SPDX-License-Identifier: Apache-2.0
#include "agent/standby/start_archive.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "agent/standby/sitecustomize.h"
#include "base/kernel_calls.h"

namespace muster::agent::standby {
namespace {

// CRC-32 of IEEE 802.3, as zip has it.
uint32_t Crc32(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0);
  }
  return ~crc;
}

class LittleEndian {
 public:
  LittleEndian& Put(uint32_t value, int bytes) {
    for (int byte = 0; byte < bytes; ++byte) text_ += static_cast<char>((value >> (8 * byte)) & 0xff);
    return *this;
  }
  LittleEndian& Put(std::string_view text) {
    text_ += text;
    return *this;
  }
  size_t size() const { return text_.size(); }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

constexpr uint32_t kLocalHead = 0x04034b50, kCentralHead = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kVersion = 20, kStored = 0, kFirstDay = 0x21;  // 1980-01-01, the first day that zip knows

}  // namespace

// PKZIP's APPNOTE, 4.3: a local header before each file, the central directory, its end.
std::string ZipOf(const std::vector<std::pair<std::string_view, std::string_view>>& files) {
  LittleEndian zip, directory;
  for (const auto& [name, content] : files) {
    const auto facts = [crc = Crc32(content), size = static_cast<uint32_t>(content.size()),
                        length = static_cast<uint32_t>(name.size())](LittleEndian& head) {
      head.Put(kVersion, 2).Put(0, 2).Put(kStored, 2).Put(0, 2).Put(kFirstDay, 2);  // flags, method, time, date
      head.Put(crc, 4).Put(size, 4).Put(size, 4).Put(length, 2).Put(0, 2);          // sizes, name, extra field
    };
    const auto place = static_cast<uint32_t>(zip.size());
    zip.Put(kLocalHead, 4);
    facts(zip);
    zip.Put(name).Put(content);
    directory.Put(kCentralHead, 4).Put(kVersion, 2);
    facts(directory);
    directory.Put(0, 2).Put(0, 2).Put(0, 2).Put(0, 4).Put(place, 4).Put(name);  // comment, disk, attributes
  }
  const auto count = static_cast<uint32_t>(files.size()), place = static_cast<uint32_t>(zip.size());
  const auto size = static_cast<uint32_t>(directory.size());
  zip.Put(directory.Take());
  zip.Put(kEnd, 4).Put(0, 2).Put(0, 2).Put(count, 2).Put(count, 2).Put(size, 4).Put(place, 4).Put(0, 2);
  return zip.Take();
}

StatusOr<Descriptor> OpenStartArchive() {
  constexpr std::string_view kWhat = "preparing standby workers";
  Descriptor memory(static_cast<int>(syscall(SYS_memfd_create, "muster-standby", MFD_CLOEXEC)));
  if (!memory.ok()) return CallStatus(errno, "memfd_create", kWhat);
  const std::string zip = ZipOf({{"sitecustomize.py", kSitecustomize},
                                 {"learner.py", kLearner},
                                 {"watcher.py", kWatcher},
                                 {"constants.py", kConstants},
                                 {"probe.py", kProbe}});
  if (write(memory.get(), zip.data(), zip.size()) != static_cast<ssize_t>(zip.size()) ||
      lseek(memory.get(), 0, SEEK_SET) != 0) {
    return ErrnoStatus(errno, kWhat);
  }
  return memory;
}

}  // namespace muster::agent::standby
