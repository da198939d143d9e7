// SPDX-License-Identifier: Apache-2.0
#include "net/lobby.h"

#include <sys/socket.h>

#include <string_view>
#include <utility>

#include "base/attach.h"

namespace muster::net {

namespace asio = boost::asio;

namespace {

constexpr auto kPatience = std::chrono::seconds(10);
constexpr auto kLeast = std::chrono::seconds(1);  // a client of the protocol sends its first bytes at once
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr char kTlsHandshake = 0x16;
constexpr int kFirst = kPreface.size();  // bytes; a TLS client's first message is longer

}  // namespace

Lobby::Lobby(asio::io_context& loop, std::function<void(int fd)> ready)
    : loop_(loop), ready_(std::move(ready)), deadline_(loop) {}

void Lobby::Admit(Descriptor connection) {
  // The kernel reports the connection as readable when so many bytes have come, or its end.
  ::setsockopt(connection.get(), SOL_SOCKET, SO_RCVLOWAT, &kFirst, sizeof kFirst);
  asio::posix::stream_descriptor watched(loop_);
  if (!Attach(watched, std::move(connection), "a new connection").ok()) return;
  const uint64_t number = ++last_;
  Guest& guest = guests_.emplace(number, Guest{std::move(watched), MonotonicClock::now()}).first->second;
  guest.connection.async_wait(
      asio::posix::descriptor_base::wait_read,
      [this, number, alive = std::weak_ptr<bool>(alive_)](const boost::system::error_code& error) {
        if (!error && !alive.expired()) Heard(number);
      });
  if (guests_.size() == 1) AwaitDeadline();
}

void Lobby::Heard(uint64_t number) {
  const auto guest = guests_.find(number);
  if (guest == guests_.end()) return;  // closed a moment ago
  char first[kFirst];
  const int fd = guest->second.connection.native_handle(), any = 1;
  const ssize_t count = ::recv(fd, first, sizeof first, MSG_PEEK);
  const bool fits = count == kFirst && (first[0] == kTlsHandshake || std::string_view(first, kFirst) == kPreface);
  if (fits) {
    ::setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &any, sizeof any);
    ready_(guest->second.connection.release());
  }
  guests_.erase(guest);
}

bool Lobby::CloseOldest() {
  if (guests_.empty() || MonotonicClock::now() - guests_.begin()->second.since < kLeast) return false;
  guests_.erase(guests_.begin());
  return true;
}

void Lobby::AwaitDeadline() {
  const TimePoint now = MonotonicClock::now();
  std::erase_if(guests_, [now](const auto& entry) { return entry.second.since + kPatience <= now; });
  if (guests_.empty()) return;
  deadline_.expires_at(guests_.begin()->second.since + kPatience);
  deadline_.async_wait([this, alive = std::weak_ptr<bool>(alive_)](const boost::system::error_code& error) {
    if (!error && !alive.expired()) AwaitDeadline();
  });
}

void Lobby::Close() {
  deadline_.cancel();
  guests_.clear();
}

}  // namespace muster::net
