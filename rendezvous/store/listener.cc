// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/store/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <cerrno>

#include "base/host_names.h"
#include "base/text.h"

namespace muster::store {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

// `host`: as the caller gave it, for the errors.
StatusOr<Descriptor> Open(const tcp::endpoint& endpoint, bool dual_stack, std::string_view host) {
  Descriptor socket(::socket(endpoint.data()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!socket.ok()) return ListenStatus(errno, host, endpoint.port());
  const int fd = socket.get(), on = 1, off = 0, idle = 300;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (dual_stack) ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  // Accepted connections inherit these. Keepalive closes the connection of a peer that vanished.
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  // Loopback has no congestion, and a congestion control that paces (BBR) would only delay answers.
  if (endpoint.address().is_loopback()) ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
  if (::bind(fd, endpoint.data(), endpoint.size()) != 0 || ::listen(fd, SOMAXCONN) != 0) {
    return ListenStatus(errno, host, endpoint.port());
  }
  return socket;
}

}  // namespace

StatusOr<Listener> OpenListener(std::string_view host, uint16_t port) {
  boost::system::error_code error;
  asio::ip::address address = asio::ip::address_v6::any();
  if (host == "localhost") host = "127.0.0.1";
  if (!host.empty()) address = asio::ip::make_address(std::string(host), error);
  if (error) {
    return absl::InvalidArgumentError(
        fmt::format("store: \"{}\" is not a numeric address; give one, or nothing for every address", host));
  }
  const bool dual_stack = host.empty() || address == asio::ip::address_v6::any();
  StatusOr<Descriptor> socket = Open({address, port}, dual_stack, host);
  const bool lacks_ipv6 = !socket.ok() && host.empty() && !absl::IsAlreadyExists(socket.status());
  if (lacks_ipv6) socket = Open({asio::ip::address_v4::any(), port}, false, host);
  MUSTER_RETURN_IF_ERROR(socket.status());
  tcp::endpoint bound;
  socklen_t size = static_cast<socklen_t>(bound.capacity());
  if (::getsockname(socket->get(), bound.data(), &size) != 0) return ErrnoStatus(errno, "store: asking its own port");
  return Listener{*std::move(socket), bound.port()};
}

std::optional<tcp::socket> SocketOf(asio::io_context& loop, Descriptor connection) {
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  ::getsockname(connection.get(), reinterpret_cast<sockaddr*>(&own), &size);
  tcp::socket socket(loop);
  boost::system::error_code error;
  socket.assign(own.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), connection.get(), error);
  if (error) return std::nullopt;
  connection.Release();
  return socket;
}

}  // namespace muster::store
