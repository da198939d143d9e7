// SPDX-License-Identifier: Apache-2.0
#include "local/network/masquerade.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/descriptors.h"
#include "base/host_fs.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "local/network/nf_tables.h"

namespace muster::local {

namespace {

constexpr char kForward[] = "/proc/sys/net/ipv4/ip_forward";

Status SetForward(char value) {
  const Descriptor file(open(kForward, O_WRONLY | O_CLOEXEC));
  if (!file.ok() || write(file.get(), &value, 1) != 1) return ErrnoStatus(errno, kForward);
  return absl::OkStatus();
}

}  // namespace

// Each run holds a shared lock on the file of the setting itself. A note in /run says that the setting was off before
// the first of these runs switched it on. Note and setting are both reset when the machine starts.
class Masquerade::Impl {
 public:
  Impl() {
    const auto network = HostFs().Identity("/proc/self/ns/net");
    note_ = fmt::format("/run/muster-local-ip-forward-{}", network ? network->second : 0);
  }

  Status Begin(const std::string& link, uint32_t subnet, int bits) {
    MUSTER_ASSIGN_OR_RETURN(rules_, NfTables::Open());
    MUSTER_ASSIGN_OR_RETURN(const std::string drops, rules_->DroppingChain());
    if (!drops.empty()) {
      return absl::FailedPreconditionError(fmt::format("the firewall drops forwarded packets (nft chain {})", drops));
    }
    MUSTER_RETURN_IF_ERROR(Forward());
    return rules_->AddMasquerade(fmt::format("muster_{}", link), subnet, bits, link);
  }

  ~Impl() {
    rules_.reset();
    if (!lock_.ok()) return;
    // The exclusive lock says that no other run needs the setting.
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 && access(note_.c_str(), F_OK) == 0) {
      if (SetForward('0').ok()) unlink(note_.c_str());
    }
  }

 private:
  Status Forward() {
    lock_ = Descriptor(open(kForward, O_RDONLY | O_CLOEXEC));
    if (!lock_.ok() || flock(lock_.get(), LOCK_SH) != 0) return ErrnoStatus(errno, kForward);
    if (HostFs().ReadLine(kForward) == "1") return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(ReplaceFile(note_, "0\n", {}));
    return SetForward('1');
  }

  std::string note_;
  Descriptor lock_;
  std::optional<NfTables> rules_;
};

Masquerade::Masquerade(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Masquerade::~Masquerade() = default;

StatusOr<std::unique_ptr<Masquerade>> Masquerade::Make(const std::string& link, uint32_t subnet, int bits) {
  auto impl = std::make_unique<Impl>();
  MUSTER_RETURN_IF_ERROR(impl->Begin(link, subnet, bits));
  return std::unique_ptr<Masquerade>(new Masquerade(std::move(impl)));
}

}  // namespace muster::local
