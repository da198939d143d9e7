// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/verify_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/text.h"
#include "initializers/disk/disk_pool.h"
#include "initializers/disk/file_hash.h"
#include "initializers/target/manifest.h"
#include "initializers/target/metadata_files.h"

namespace muster::initializers {
namespace {

// Opens `path` below `folder`. Refuses a link in the path: the target of a link was not published.
StatusOr<Descriptor> OpenBelow(int folder, std::string_view path, int flags) {
  Descriptor at(dup(folder));
  while (true) {
    const size_t slash = path.find('/');
    const bool last = slash == std::string_view::npos || slash + 1 == path.size();
    const std::string name(path.substr(0, slash));
    const int how = last ? flags : O_RDONLY | O_DIRECTORY;
    Descriptor next(openat(at.get(), name.c_str(), how | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!next.ok()) return errno == ELOOP ? absl::FailedPreconditionError("it is a link") : ErrnoStatus(errno, "");
    at = std::move(next);
    if (last) return at;
    path.remove_prefix(slash + 1);
  }
}

std::string WhatIsWrong(const Status& status) {
  if (absl::IsNotFound(status)) return "it is not there";
  return std::string(Message(status));
}

// Checks one file; nullopt: it is unchanged.
std::optional<std::string> Check(int folder, const ManifestFile& file, std::span<char> buffer,
                                 const std::atomic<bool>& stop) {
  const bool is_folder = file.path.ends_with('/');
  auto open = OpenBelow(folder, file.path, is_folder ? O_RDONLY | O_DIRECTORY : O_RDONLY);
  if (!open.ok()) return WhatIsWrong(open.status());
  if (is_folder) return std::nullopt;
  struct stat facts {};
  if (fstat(open->get(), &facts) != 0) return WhatIsWrong(ErrnoStatus(errno, ""));
  if (!S_ISREG(facts.st_mode)) return "it is not a file";
  if (static_cast<uint64_t>(facts.st_size) != file.size) {
    return fmt::format("it is {} bytes long in place of {}", facts.st_size, file.size);
  }
  if (file.hash.empty()) return std::nullopt;
  auto expected = ParseExpectation(file.hash);
  if (!expected.ok()) return WhatIsWrong(expected.status());
  if (!HashAvailable(expected->kind)) {
    return fmt::format("its {} cannot be checked: this machine's OpenSSL refuses it (FIPS)", HashName(expected->kind));
  }
  auto hash = HashContent(ReadAtOf(open->get()), file.size, *expected, buffer, [&stop] { return stop.load(); });
  return hash.ok() ? hash->mismatch : WhatIsWrong(hash.status());
}

}  // namespace

StatusOr<FolderCheck> VerifyFolder(const std::string& folder, int threads, const std::atomic<bool>& stop) {
  const TimePoint began = MonotonicClock::now();
  auto manifest = ReadMetadataManifest(folder, kManifestName);
  if (absl::IsNotFound(manifest.status())) {
    return absl::FailedPreconditionError(fmt::format("{}: {}; nothing says what has to be there: bring it in first",
                                                     folder, Message(manifest.status())));
  }
  if (!manifest.ok()) return absl::FailedPreconditionError(fmt::format("{}: {}", folder, Message(manifest.status())));
  Descriptor root(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.ok()) return ErrnoStatus(errno, folder);

  FolderCheck check;
  check.source = manifest->source;
  for (const ManifestFile& file : manifest->files) {
    if (file.unpacked) continue;
    ++check.files;
    check.bytes += file.size;
    check.unhashed += file.hash.empty() && !file.path.ends_with('/');
  }
  std::atomic<size_t> next = 0;
  std::mutex guard;  // guards `check`
  auto work = [&] {
    std::string buffer(kBlockBytes, '\0');
    for (size_t at = next++; at < manifest->files.size() && !stop; at = next++) {
      const ManifestFile file = manifest->files[at];
      if (file.unpacked) continue;
      auto wrong = Check(root.get(), file, buffer, stop);
      if (!wrong || stop) continue;
      std::lock_guard lock(guard);
      ++check.wrong;
      if (check.problems.size() < kMostProblems) check.problems.push_back(fmt::format("{}: {}", file.path, *wrong));
    }
  };
  {
    std::vector<std::jthread> readers;
    for (int i = 1; i < threads; ++i) readers.emplace_back(work);
    work();
  }
  if (stop) return absl::CancelledError(fmt::format("{}: stopped before all of it was read", folder));
  std::sort(check.problems.begin(), check.problems.end());
  check.seconds = std::chrono::duration<double>(MonotonicClock::now() - began).count();
  return check;
}

}  // namespace muster::initializers
