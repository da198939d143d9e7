// SPDX-License-Identifier: Apache-2.0
#include "net/connect.h"

#include <fcntl.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "base/host_names.h"
#include "base/text.h"

namespace muster::net {

namespace asio = boost::asio;
using asio::ip::tcp;

StatusOr<HostPort> ParseHostPort(const std::string& address, int lowest_port) {
  size_t colon = address.rfind(':');
  HostPort result;
  std::optional<int64_t> port;
  if (colon != std::string::npos) {
    result.host = address.substr(0, colon);
    port = ParseInt(std::string_view(address).substr(colon + 1));
  }
  bool bracketed = result.host.size() > 2 && result.host.front() == '[' && result.host.back() == ']';
  if (bracketed) result.host = result.host.substr(1, result.host.size() - 2);
  if (result.host.empty() || !port || *port < lowest_port || *port > 65535 ||
      (!bracketed && result.host.find(':') != std::string::npos)) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not an endpoint; give host:port with a port of {} to 65535, an IPv6 address in brackets",
                    address, lowest_port));
  }
  result.port = static_cast<int>(*port);
  return result;
}

namespace {

std::string Numeric(const tcp::endpoint& endpoint) {
  return JoinHostPort(endpoint.address().to_string(), endpoint.port());
}

Loss LossOf(const boost::system::error_code& error) {
  return error == asio::error::connection_refused ? Loss::kRefused : Loss::kUnreachable;
}

class Attempt final : public Connecting {
 public:
  Attempt(asio::io_context& loop, Resolver& resolver, const std::string& address, Duration limit, Events events)
      : shared_(std::make_shared<Shared>(loop, resolver, address, limit, std::move(events))) {
    shared_->Begin();
  }
  ~Attempt() override { shared_->Drop(); }

 private:
  struct Shared : std::enable_shared_from_this<Shared> {
    Shared(asio::io_context& loop, Resolver& resolver, const std::string& address, Duration limit, Events events)
        : loop(loop),
          resolver(resolver),
          address(address),
          deadline(MonotonicClock::now() + limit),
          limit(limit),
          events(std::move(events)),
          socket(loop),
          timer(loop) {}

    void Begin() {
      StatusOr<HostPort> parsed = ParseHostPort(address);
      if (!parsed.ok()) {
        asio::post(loop, [self = shared_from_this(), status = parsed.status()] {
          self->Fail(Loss::kUnresolved, std::string(Message(status)));
        });
        return;
      }
      port = static_cast<uint16_t>(parsed->port);
      resolver.Resolve(
          parsed->host, limit, [self = shared_from_this()](StatusOr<std::vector<asio::ip::address>> found) {
            if (self->over) return;
            if (!found.ok())
              return self->Fail(Loss::kUnresolved, fmt::format("{}: {}", self->address, Message(found.status())));
            self->addresses = *std::move(found);
            self->Next();
          });
    }

    void Next() {
      if (at == addresses.size()) {
        return Fail(refused && !silent ? Loss::kRefused : Loss::kUnreachable, Join(reasons, "; "));
      }
      tcp::endpoint endpoint(addresses[at], port);
      TimePoint now = MonotonicClock::now();
      if (now >= deadline) {
        at = addresses.size();
        silent = true;
        reasons.push_back(fmt::format("{}: no answer in time", Numeric(endpoint)));
        return Next();
      }
      ++at;
      boost::system::error_code ignored;
      socket.close(ignored);
      // The remaining addresses share the remaining time equally.
      timer.expires_at(now + (deadline - now) / static_cast<int>(addresses.size() - at + 1));
      ++round;
      timer.async_wait([self = shared_from_this(), round = round, endpoint](const boost::system::error_code& error) {
        if (error || self->over || self->round != round) return;
        ++self->round;
        self->silent = true;
        self->reasons.push_back(fmt::format("{}: no answer in time", Numeric(endpoint)));
        self->Next();
      });
      socket.async_connect(
          endpoint, [self = shared_from_this(), round = round, endpoint](const boost::system::error_code& error) {
            if (self->over || self->round != round) return;
            ++self->round;
            if (!error) return self->Succeed(endpoint);
            if (LossOf(error) == Loss::kRefused) self->refused = true;
            self->reasons.push_back(fmt::format("{}: {}", Numeric(endpoint), error.message()));
            self->Next();
          });
    }

    void Succeed(const tcp::endpoint& endpoint) {
      over = true;
      timer.cancel();
      boost::system::error_code error;
      // A connection to a free port of this machine can connect to itself (simultaneous open). Nothing listens there.
      if (socket.local_endpoint(error) == socket.remote_endpoint(error)) {
        socket.close(error);
        over = false;
        return Fail(Loss::kRefused, fmt::format("{}: Connection refused", Numeric(endpoint)));
      }
      socket.set_option(tcp::no_delay(true), error);
      socket.non_blocking(true, error);
      int fd = socket.release(error);
      if (error) {
        over = false;
        return Fail(Loss::kUnreachable, fmt::format("{}: {}", Numeric(endpoint), error.message()));
      }
      fcntl(fd, F_SETFD, FD_CLOEXEC);
      events.connected({fd, Numeric(endpoint), endpoint.address().is_v6()});
    }

    void Fail(Loss loss, const std::string& detail) {
      if (over) return;
      Drop();
      events.failed({loss, detail});
    }

    void Drop() {
      over = true;
      timer.cancel();
      boost::system::error_code ignored;
      socket.close(ignored);
    }

    asio::io_context& loop;
    Resolver& resolver;
    const std::string address;
    const TimePoint deadline;
    const Duration limit;
    const Events events;
    tcp::socket socket;
    asio::steady_timer timer;
    std::vector<asio::ip::address> addresses;
    uint16_t port = 0;
    size_t at = 0;
    int round = 0;  // number of the current connect and its timer; the handler that comes second is stale
    bool refused = false;
    bool silent = false;
    bool over = false;
    std::vector<std::string> reasons;
  };

  std::shared_ptr<Shared> shared_;
};

}  // namespace

std::unique_ptr<Connecting> Connecting::Start(asio::io_context& loop, Resolver& resolver, const std::string& address,
                                              Duration limit, Events events) {
  return std::make_unique<Attempt>(loop, resolver, address, limit, std::move(events));
}

}  // namespace muster::net
