// SPDX-License-Identifier: Apache-2.0
#include "base/settings_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptors.h"
#include "base/text.h"

namespace muster {

StatusOr<std::string> ReadSettingsFile(const std::string& path) {
  constexpr size_t kLongest = 1 << 20;
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.ok()) return ErrnoStatus(errno, path);
  std::string text(kLongest + 1, '\0');
  size_t have = 0;
  while (have < text.size()) {
    ssize_t got = read(file.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, path);
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  if (have > kLongest) return absl::InvalidArgumentError(fmt::format("{} is longer than {} bytes", path, kLongest));
  text.resize(have);
  return text;
}

}  // namespace muster
