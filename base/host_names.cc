// SPDX-License-Identifier: Apache-2.0
#include "base/host_names.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/text.h"

namespace muster {
namespace {

// A parsed address, so that two spellings compare equal. An IPv4-mapped IPv6 address becomes the IPv4 address.
struct Address {
  int family = 0;  // 0: no address
  std::array<unsigned char, 16> bytes{};
  bool operator==(const Address&) const = default;
};

Address ReadAddress(std::string_view text) {
  Address address;
  std::string plain(text.substr(0, text.find('%')));
  if (inet_pton(AF_INET, plain.c_str(), address.bytes.data()) == 1) {
    address.family = AF_INET;
  } else if (in6_addr six{}; inet_pton(AF_INET6, plain.c_str(), &six) == 1) {
    bool mapped = IN6_IS_ADDR_V4MAPPED(&six);
    address.family = mapped ? AF_INET : AF_INET6;
    std::memcpy(address.bytes.data(), six.s6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
  }
  return address;
}

bool IsLoopback(const Address& address) {
  if (address.family == AF_INET) return address.bytes[0] == 127;
  if (address.family != AF_INET6) return false;
  std::array<unsigned char, 16> one{};
  one[15] = 1;
  return address.bytes == one;
}

}  // namespace

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

std::string FullHostName(const std::string& host_name, const HostFs& fs) {
  if (host_name.find('.') != std::string::npos) return host_name;
  std::string hosts = fs.Read("/etc/hosts").value_or("");
  for (std::string_view line : Split(hosts, '\n')) {
    const std::vector<std::string_view> words = Words(line.substr(0, line.find('#')));
    if (words.size() < 2 || std::find(words.begin() + 1, words.end(), host_name) == words.end()) continue;
    for (auto name = words.begin() + 1; name != words.end(); ++name) {
      if (name->find('.') != std::string_view::npos) return std::string(*name);
    }
  }
  return host_name;
}

std::vector<std::string> LocalAddresses() {
  std::vector<std::string> four, six;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0 || (at->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET6_ADDRSTRLEN] = {};
    if (at->ifa_addr->sa_family == AF_INET) {
      sockaddr_in address{};
      std::memcpy(&address, at->ifa_addr, sizeof address);
      if (inet_ntop(AF_INET, &address.sin_addr, text, sizeof text) != nullptr) four.emplace_back(text);
    } else if (at->ifa_addr->sa_family == AF_INET6) {
      sockaddr_in6 address{};
      std::memcpy(&address, at->ifa_addr, sizeof address);
      if (IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr)) continue;
      if (inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof text) != nullptr) six.emplace_back(text);
    }
  }
  freeifaddrs(all);
  four.insert(four.end(), six.begin(), six.end());
  return four;
}

MachineNames ThisMachine() {
  std::string name = HostName();
  return {name, FullHostName(name), LocalAddresses()};
}

bool MeansThisMachine(std::string_view host, const MachineNames& machine, const std::vector<std::string>& resolved) {
  if (host.empty()) return false;
  std::string wanted = Lower(host);
  if (wanted.ends_with('.')) wanted.pop_back();
  const std::string name = Lower(machine.host_name), full = Lower(machine.full_name);
  if (wanted == "localhost" || wanted == name || wanted == full) return true;
  // "pod.service" also matches pod.service.namespace.svc.cluster.local, since the DNS search list adds the rest.
  if (!name.empty() && wanted.starts_with(name + ".") && full.starts_with(wanted + ".")) return true;
  auto own = [&](const std::string& text) {
    Address address = ReadAddress(text);
    if (address.family == 0) return false;
    if (IsLoopback(address)) return true;
    return std::any_of(machine.addresses.begin(), machine.addresses.end(),
                       [&](const std::string& mine) { return ReadAddress(mine) == address; });
  };
  return own(wanted) || std::any_of(resolved.begin(), resolved.end(), own);
}

bool IsLoopbackHost(std::string_view host) { return host == "localhost" || IsLoopback(ReadAddress(host)); }

std::string EndpointHint(std::string_view host, const MachineNames& machine) {
  std::string name = Lower(host);
  if (name.ends_with('.')) name.pop_back();
  if (name.empty()) return {};
  if (IsLoopbackHost(name)) {
    return fmt::format(
        "the endpoint {} leads each machine to itself; if the nodes are on several machines, give each of them the "
        "name or the address of node 0's machine",
        host);
  }
  if (name == Lower(machine.host_name) || name == Lower(machine.full_name)) {
    return fmt::format(
        "the endpoint {} is this machine's own name; if another machine has the same name, it connects to itself: give "
        "each machine its own name, or use the address of node 0's machine as the endpoint",
        host);
  }
  return {};
}

Status ListenStatus(int error, std::string_view host, int port) {
  const std::string where = host.empty() ? fmt::format("port {}", port) : fmt::format("{} port {}", host, port);
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(
        fmt::format("{} is taken by another process; free it, or choose another one", where));
  }
  Status status = ErrnoStatus(error, fmt::format("cannot listen on {}", where));
  if (error == EMFILE || error == ENFILE) return status;  // ErrnoStatus has added what to do
  return WithRemedy(status, "give an address of this machine, and a port that this user may take");
}

std::string JoinHostPort(std::string_view host, int port) {
  return host.find(':') == std::string_view::npos ? fmt::format("{}:{}", host, port)
                                                  : fmt::format("[{}]:{}", host, port);
}

}  // namespace muster
