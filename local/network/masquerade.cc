#include "local/network/masquerade.h"

#include <fcntl.h>
#include <nftables/libnftables.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/descriptors.h"
#include "base/host_fs.h"
#include "base/json_fields.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "controller/api/lenient.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr char kForward[] = "/proc/sys/net/ipv4/ip_forward";

struct FreeContext {
  void operator()(nft_ctx* context) const { nft_ctx_free(context); }
};
using Context = std::unique_ptr<nft_ctx, FreeContext>;

Context MakeContext() {
  Context context(nft_ctx_new(NFT_CTX_DEFAULT));
  if (context) nft_ctx_buffer_output(context.get());
  if (context) nft_ctx_buffer_error(context.get());
  return context;
}

Status RunIn(nft_ctx* context, const std::string& commands) {
  if (nft_run_cmd_from_buffer(context, commands.c_str()) == 0) return absl::OkStatus();
  const std::string error = nft_ctx_get_error_buffer(context);
  return absl::FailedPreconditionError(
      fmt::format("nftables: {}", error.substr(0, std::min(error.find('\n'), error.size()))));
}

// A chain whose policy drops forwarded packets that no rule accepts: "ip filter FORWARD". Empty: there is none.
StatusOr<std::string> DroppingChain() {
  const Context context = MakeContext();
  if (!context) return absl::FailedPreconditionError("nftables cannot be used");
  nft_ctx_output_set_flags(context.get(), NFT_CTX_OUTPUT_JSON);
  MUSTER_RETURN_IF_ERROR(RunIn(context.get(), "list chains"));
  const Json chains = Json::parse(nft_ctx_get_output_buffer(context.get()), nullptr, false);
  for (const Json& entry : ListField(chains, "nftables")) {
    const Json& chain = MapField(entry, "chain");
    const std::string family = TextField(chain, "family");
    if ((family == "ip" || family == "inet") && TextField(chain, "hook") == "forward" &&
        TextField(chain, "policy") == "drop") {
      return fmt::format("{} {} {}", family, TextField(chain, "table"), TextField(chain, "name"));
    }
  }
  return "";
}

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

  Status Begin(const std::string& link, const std::string& subnet) {
    MUSTER_ASSIGN_OR_RETURN(const std::string drops, DroppingChain());
    if (!drops.empty()) {
      return absl::FailedPreconditionError(fmt::format("the firewall drops forwarded packets (nft chain {})", drops));
    }
    MUSTER_RETURN_IF_ERROR(Forward());
    rules_ = MakeContext();
    if (!rules_) return absl::FailedPreconditionError("nftables cannot be used");
    return RunIn(
        rules_.get(),
        fmt::format("table ip muster_{0} {{\nflags owner\nchain outward {{\ntype nat hook postrouting priority srcnat\n"
                    "ip saddr {1} oifname != \"{0}\" masquerade\n}}\n}}\n",
                    link, subnet));
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
  Context rules_;  // the kernel removes the table when its socket is closed
};

Masquerade::Masquerade(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Masquerade::~Masquerade() = default;

StatusOr<std::unique_ptr<Masquerade>> Masquerade::Make(const std::string& link, const std::string& subnet) {
  auto impl = std::make_unique<Impl>();
  MUSTER_RETURN_IF_ERROR(impl->Begin(link, subnet));
  return std::unique_ptr<Masquerade>(new Masquerade(std::move(impl)));
}

}  // namespace muster::local
