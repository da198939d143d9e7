// SPDX-License-Identifier: Apache-2.0
#include "local/network/links.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netlink/addr.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/bridge.h>
#include <netlink/route/link/veth.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <sched.h>

#include <cerrno>
#include <functional>
#include <thread>

#include "base/text.h"

namespace muster::local {
namespace {

template <auto Put>
struct PutBack {
  template <class T>
  void operator()(T* object) const {
    Put(object);
  }
};
using Link = std::unique_ptr<rtnl_link, PutBack<rtnl_link_put>>;
using Address = std::unique_ptr<nl_addr, PutBack<nl_addr_put>>;

Status Wrong(int error, const std::string& what) {
  if (error >= 0) return absl::OkStatus();
  const std::string text = fmt::format("{}: {}", what, nl_geterror(error));
  if (error == -NLE_EXIST) return absl::AlreadyExistsError(text);
  if (error == -NLE_PERM || error == -NLE_NOACCESS) return absl::PermissionDeniedError(text);
  return absl::UnavailableError(text);
}

Address Ipv4(uint32_t address, int bits) {
  const uint32_t bytes = htonl(address);
  Address made(nl_addr_build(AF_INET, &bytes, sizeof bytes));
  if (made) nl_addr_set_prefixlen(made.get(), bits);
  return made;
}

// Runs `what` in a thread of its own, since each thread has its own current network namespace.
Status Aside(const std::function<Status()>& what) {
  Status status;
  std::thread([&] { status = what(); }).join();
  return status;
}

}  // namespace

StatusOr<Descriptor> NewNetwork() {
  Descriptor network;
  MUSTER_RETURN_IF_ERROR(Aside([&network] {
    if (unshare(CLONE_NEWNET) != 0) return ErrnoStatus(errno, "a network namespace cannot be made");
    network = Descriptor(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    return network.ok() ? absl::OkStatus() : ErrnoStatus(errno, "/proc/thread-self/ns/net");
  }));
  return network;
}

void Links::Free::operator()(nl_sock* socket) const { nl_socket_free(socket); }

StatusOr<Links> Links::Of(int network) {
  Links links(nl_socket_alloc());
  if (!links.socket_) return absl::ResourceExhaustedError("no memory for a netlink socket");
  const auto connect = [&links] { return Wrong(nl_connect(links.socket_.get(), NETLINK_ROUTE), "rtnetlink"); };
  if (network < 0) {
    MUSTER_RETURN_IF_ERROR(connect());
    return links;
  }
  MUSTER_RETURN_IF_ERROR(Aside([network, &connect] {
    return setns(network, CLONE_NEWNET) == 0 ? connect() : ErrnoStatus(errno, "a network namespace cannot be entered");
  }));
  return links;
}

StatusOr<int> Links::IndexOf(const std::string& name) {
  rtnl_link* found = nullptr;
  MUSTER_RETURN_IF_ERROR(Wrong(rtnl_link_get_kernel(socket_.get(), 0, name.c_str(), &found), name));
  const Link link(found);
  return rtnl_link_get_ifindex(link.get());
}

Status Links::AddPair(const std::string& name, const std::string& bridge, const std::string& peer, int network) {
  const Link link(rtnl_link_veth_alloc());
  if (!link) return absl::ResourceExhaustedError("no memory for a veth");
  rtnl_link_set_name(link.get(), name.c_str());
  rtnl_link_set_flags(link.get(), IFF_UP);
  if (!bridge.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const int index, IndexOf(bridge));
    rtnl_link_set_master(link.get(), index);
  }
  const Link other(rtnl_link_veth_get_peer(link.get()));
  rtnl_link_set_name(other.get(), peer.c_str());
  rtnl_link_set_ns_fd(other.get(), network);
  return Wrong(rtnl_link_add(socket_.get(), link.get(), NLM_F_CREATE | NLM_F_EXCL),
               fmt::format("veth {} cannot be made", name));
}

Status Links::AddBridge(const std::string& name) {
  const Link link(rtnl_link_bridge_alloc());
  if (!link) return absl::ResourceExhaustedError("no memory for a bridge");
  rtnl_link_set_name(link.get(), name.c_str());
  rtnl_link_set_flags(link.get(), IFF_UP);
  return Wrong(rtnl_link_add(socket_.get(), link.get(), NLM_F_CREATE | NLM_F_EXCL),
               fmt::format("bridge {} cannot be made", name));
}

Status Links::Remove(const std::string& name) {
  const Link link(rtnl_link_alloc());
  if (!link) return absl::ResourceExhaustedError("no memory for a link");
  rtnl_link_set_name(link.get(), name.c_str());
  return Wrong(rtnl_link_delete(socket_.get(), link.get()), fmt::format("{} cannot be removed", name));
}

Status Links::SetAddress(const std::string& name, uint32_t address, int bits) {
  MUSTER_ASSIGN_OR_RETURN(const int index, IndexOf(name));
  const std::unique_ptr<rtnl_addr, PutBack<rtnl_addr_put>> entry(rtnl_addr_alloc());
  const Address local = Ipv4(address, bits);
  if (!entry || !local) return absl::ResourceExhaustedError("no memory for an address");
  rtnl_addr_set_ifindex(entry.get(), index);
  rtnl_addr_set_local(entry.get(), local.get());
  return Wrong(rtnl_addr_add(socket_.get(), entry.get(), 0), fmt::format("the address of {} cannot be set", name));
}

Status Links::SetUp(const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const int index, IndexOf(name));
  const Link link(rtnl_link_alloc());
  if (!link) return absl::ResourceExhaustedError("no memory for a link");
  rtnl_link_set_ifindex(link.get(), index);
  rtnl_link_set_flags(link.get(), IFF_UP);
  return Wrong(rtnl_link_change(socket_.get(), link.get(), link.get(), 0), fmt::format("{} cannot be set up", name));
}

Status Links::AddDefaultRoute(uint32_t gateway) {
  const std::unique_ptr<rtnl_route, PutBack<rtnl_route_put>> route(rtnl_route_alloc());
  rtnl_nexthop* hop = rtnl_route_nh_alloc();
  const Address all = Ipv4(0, 0), through = Ipv4(gateway, 32);
  if (!route || hop == nullptr || !all || !through) {
    if (hop != nullptr) rtnl_route_nh_free(hop);
    return absl::ResourceExhaustedError("no memory for a route");
  }
  rtnl_route_set_family(route.get(), AF_INET);
  rtnl_route_set_dst(route.get(), all.get());
  rtnl_route_nh_set_gateway(hop, through.get());
  rtnl_route_add_nexthop(route.get(), hop);  // the route owns it now
  return Wrong(rtnl_route_add(socket_.get(), route.get(), NLM_F_CREATE), "the default route cannot be set");
}

Status Links::SetBridge(const std::string& name, const std::string& bridge) {
  MUSTER_ASSIGN_OR_RETURN(const int index, IndexOf(name));
  const std::string what = fmt::format("the bridge of {} cannot be set", name);
  if (bridge.empty()) return Wrong(rtnl_link_release_ifindex(socket_.get(), index), what);
  MUSTER_ASSIGN_OR_RETURN(const int master, IndexOf(bridge));
  return Wrong(rtnl_link_enslave_ifindex(socket_.get(), master, index), what);
}

}  // namespace muster::local
