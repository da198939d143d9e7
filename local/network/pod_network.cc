// SPDX-License-Identifier: Apache-2.0
#include "local/network/pod_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

#include "base/descriptors.h"
#include "base/text.h"
#include "local/network/links.h"
#include "local/network/masquerade.h"

namespace muster::local {
namespace {

// Addresses for measurements (RFC 2544), which no machine of the internet has.
constexpr uint32_t kFirst = (198u << 24) | (18u << 16);
constexpr int kBits = 21;
constexpr uint32_t kSize = 1u << (32 - kBits);
constexpr int kSubnets = 64;
constexpr char kBridge[] = "br0";

std::string Text(uint32_t address) {
  const in_addr bytes{htonl(address)};
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &bytes, text, sizeof text);
  return text;
}

// True if an interface of this machine has an address in the subnet, or an address whose subnet contains it.
bool IsTaken(uint32_t subnet) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  bool taken = false;
  for (const ifaddrs* at = all; at != nullptr && !taken; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{}, mask{};
    std::memcpy(&address, at->ifa_addr, sizeof address);
    if (at->ifa_netmask != nullptr) std::memcpy(&mask, at->ifa_netmask, sizeof mask);
    const uint32_t both = ntohl(mask.sin_addr.s_addr) & ~(kSize - 1);
    taken = both != 0 && ((ntohl(address.sin_addr.s_addr) ^ subnet) & both) == 0;
  }
  freeifaddrs(all);
  return taken;
}

// True if no other process has the number. It is free again when `claim` is closed.
bool Claim(int number, Descriptor* claim) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = fmt::format("muster-local-network-{}", number);
  std::memcpy(name.sun_path + 1, text.data(), text.size());  // abstract: of this network namespace
  *claim = Descriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return claim->ok() && bind(claim->get(), reinterpret_cast<const sockaddr*>(&name), size) == 0;
}

}  // namespace

class PodNetwork::Impl {
 public:
  Status Begin() {
    if (geteuid() != 0) return absl::PermissionDeniedError("muster local does not run as root");
    MUSTER_ASSIGN_OR_RETURN(switch_, NewNetwork());
    MUSTER_ASSIGN_OR_RETURN(ports_, Links::Of(switch_.get()));
    MUSTER_RETURN_IF_ERROR(ports_->AddBridge(kBridge));
    MUSTER_ASSIGN_OR_RETURN(own_, Links::Of());
    MUSTER_RETURN_IF_ERROR(Connect());
    MUSTER_RETURN_IF_ERROR(ports_->SetUp("up"));
    MUSTER_RETURN_IF_ERROR(ports_->SetBridge("up", kBridge));
    MUSTER_RETURN_IF_ERROR(own_->SetAddress(link_, subnet_ + 1, kBits));
    MUSTER_ASSIGN_OR_RETURN(outward_, Masquerade::Make(link_, subnet_, kBits));
    gateway_ = Text(subnet_ + 1);
    return absl::OkStatus();
  }

  // Removes the link at once. The kernel would do so only some time after the end of this process.
  ~Impl() {
    if (connected_) own_->Remove(link_).IgnoreError();
  }

  StatusOr<std::string> Join(const std::string& name) {
    if (const auto known = hosts_.find(name); known != hosts_.end()) return known->second.address;
    const int number = static_cast<int>(hosts_.size());
    if (number == kMostNetworkHosts) {
      return absl::ResourceExhaustedError(fmt::format("a run has a network for {} hosts at most", kMostNetworkHosts));
    }
    const uint32_t address = subnet_ + 2 + static_cast<uint32_t>(number);
    Host host;
    host.address = Text(address);
    host.port = fmt::format("p{}", number);
    MUSTER_ASSIGN_OR_RETURN(host.network, NewNetwork());
    MUSTER_ASSIGN_OR_RETURN(Links links, Links::Of(host.network.get()));
    MUSTER_RETURN_IF_ERROR(links.SetUp("lo"));
    MUSTER_RETURN_IF_ERROR(ports_->AddPair(host.port, kBridge, "eth0", host.network.get()));
    MUSTER_RETURN_IF_ERROR(links.SetUp("eth0"));
    MUSTER_RETURN_IF_ERROR(links.SetAddress("eth0", address, kBits));
    MUSTER_RETURN_IF_ERROR(links.AddDefaultRoute(subnet_ + 1));
    return hosts_.emplace(name, std::move(host)).first->second.address;
  }

  const std::string& gateway() const { return gateway_; }

  std::vector<std::string> Enter(const std::string& name) const {
    const auto host = hosts_.find(name);
    if (host == hosts_.end()) return {};
    return {"nsenter", fmt::format("--net=/proc/{}/fd/{}", getpid(), host->second.network.get()), "--"};
  }

  Status Cut(const std::string& name, bool cut) {
    const auto host = hosts_.find(name);
    if (host == hosts_.end()) return absl::NotFoundError(fmt::format("{} has no network of its own", name));
    return ports_->SetBridge(host->second.port, cut ? "" : kBridge);
  }

 private:
  struct Host {
    std::string address, port;
    Descriptor network;
  };

  // Makes the link between this machine and the switch, with the first free number. The link of a killed run disappears
  // a moment after its number is free.
  Status Connect() {
    Status last = absl::ResourceExhaustedError("no subnet of 198.18.0.0/15 is free");
    for (int number = 0; number < kSubnets; ++number) {
      subnet_ = kFirst + static_cast<uint32_t>(number) * kSize;
      link_ = fmt::format("mstr{}", number);
      if (IsTaken(subnet_) || !Claim(number, &claim_)) continue;
      last = own_->AddPair(link_, "", "up", switch_.get());
      connected_ = last.ok();
      if (!absl::IsAlreadyExists(last)) return last;
    }
    return last;
  }

  Descriptor claim_, switch_;
  std::optional<Links> own_, ports_;  // of this machine, and of the switch
  bool connected_ = false;
  std::string link_, gateway_;
  uint32_t subnet_ = 0;
  std::map<std::string, Host> hosts_;
  std::unique_ptr<Masquerade> outward_;
};

StatusOr<std::unique_ptr<PodNetwork>> PodNetwork::Make() {
  auto impl = std::make_unique<Impl>();
  MUSTER_RETURN_IF_ERROR(impl->Begin());
  return std::unique_ptr<PodNetwork>(new PodNetwork(std::move(impl)));
}

PodNetwork::PodNetwork(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PodNetwork::~PodNetwork() = default;
StatusOr<std::string> PodNetwork::Join(const std::string& host) { return impl_->Join(host); }
const std::string& PodNetwork::gateway() const { return impl_->gateway(); }
std::vector<std::string> PodNetwork::Enter(const std::string& host) const { return impl_->Enter(host); }
Status PodNetwork::Cut(const std::string& host, bool cut) { return impl_->Cut(host, cut); }

}  // namespace muster::local
