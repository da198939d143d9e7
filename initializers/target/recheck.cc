// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/recheck.h"

#include <sys/stat.h>

#include "base/text.h"
#include "initializers/disk/file_hash.h"

namespace muster::initializers {

StatusOr<StagedHash> Recheck(const Staging& staging, const std::string& name, const RecheckWanted& wanted,
                             std::span<char> buffer, const std::atomic<bool>& stop) {
  MUSTER_ASSIGN_OR_RETURN(Descriptor file, staging.OpenWhole(name));
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0) return ErrnoStatus(errno, "reading it");
  if (static_cast<uint64_t>(facts.st_size) != wanted.size) {
    return absl::DataLossError(fmt::format("it is {} bytes long in place of {}", facts.st_size, wanted.size));
  }
  if (!wanted.verify) return StagedHash();
  std::optional<Expectation> expected = wanted.expected;
  if (!expected) {
    auto noted = ParseExpectation(wanted.noted.hash);
    if (noted.ok()) expected = Checkable(*std::move(noted));
    if (!expected) return absl::DataLossError("no hash of it was noted");
  }
  auto found = HashContent(ReadAtOf(file.get()), wanted.size, expected, buffer, [&stop] { return stop.load(); });
  MUSTER_RETURN_IF_ERROR(found.status());
  if (found->mismatch) return absl::DataLossError(*found->mismatch);
  return StagedHash{std::move(found->described), wanted.expected.has_value() || wanted.noted.verified};
}

std::string DamageText(std::string_view shown, const Status& damage) {
  return fmt::format(
      "{}: the file that an earlier start left is damaged ({}); it is fetched anew, and so are others that are damaged",
      shown, Message(damage));
}

}  // namespace muster::initializers
