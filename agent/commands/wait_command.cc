// SPDX-License-Identifier: Apache-2.0
// `muster wait TARGET...`: ends when every target is ready. For init containers, instead of a loop around nslookup.
//
// All targets are tried on one loop, each by itself: an attempt, a pause, an attempt.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <utility>

#include "agent/commands/arguments.h"
#include "agent/commands/command_line.h"
#include "agent/commands/commands.h"
#include "agent/flags/flag_values.h"
#include "agent/probe/wait_targets.h"
#include "base/exit_codes.h"
#include "base/not_yet.h"
#include "base/print.h"
#include "base/text.h"
#include "net/connect.h"
#include "net/credentials.h"
#include "net/grpc_channel.h"
#include "net/resolver.h"
#include "rendezvous/grpc_link.h"

namespace muster::agent {
namespace {

namespace asio = boost::asio;

constexpr Duration kAttemptLimit = std::chrono::seconds(5);
constexpr Duration kDialLimit = std::chrono::seconds(3);  // to a coordinator, which then has the rest to answer

void Say(const std::string& text) { PrintTo(stderr, "muster wait: {}\n", text); }

// The loop and what all targets share. Outlives them.
struct Shared {
  asio::io_context loop{1};
  std::unique_ptr<net::GrpcQueue> queue;  // only for targets of kRendezvous
  net::Credentials credentials;
  std::minstd_rand random{std::random_device{}()};
  TimePoint started = MonotonicClock::now();
  bool only_one_try = false;
  Duration timeout{};
  std::function<void()> settled;  // a target is ready, or was tried for the last time
};

class Waited {
 public:
  Waited(Shared& shared, WaitTarget target)
      : shared_(shared), target_(std::move(target)), limit_(shared.loop), pause_(shared.loop) {}

  void Try() {
    attempt_ = std::make_unique<Attempt>(shared_.loop);
    uint64_t number = ++tries_;
    switch (target_.kind) {
      case WaitKind::kDns:
        return Resolve(number);
      case WaitKind::kTcp:
        return Connect(number);
      case WaitKind::kRendezvous:
        return Ask(number);
    }
  }

  bool ready() const { return ready_; }
  bool settled() const { return ready_ || (shared_.only_one_try && failures_ > 0); }
  std::string Name() const { return target_.Name(); }
  const std::string& reason() const { return reason_; }

 private:
  // What one attempt uses; destroyed when the attempt has its result.
  struct Attempt {
    explicit Attempt(asio::io_context& loop) : resolver(loop) {}
    net::Resolver resolver;
    std::unique_ptr<net::Connecting> connecting;
    std::unique_ptr<rendezvous::Link> link;
    bool connected = false;
  };

  void Resolve(uint64_t number) {
    attempt_->resolver.Resolve(target_.host, kAttemptLimit, [this, number](auto found) {
      if (found.ok()) return Ready(number);
      Failed(number, std::string(Message(found.status())));
    });
  }

  void Connect(uint64_t number) {
    net::Connecting::Events events;
    events.connected = [this, number](const net::Connecting::Connected& connected) {
      close(connected.fd);
      Ready(number);
    };
    events.failed = [this, number](const net::Connecting::Failed& failed) { Failed(number, failed.detail); };
    attempt_->connecting =
        net::Connecting::Start(shared_.loop, attempt_->resolver, target_.Address(), kAttemptLimit, std::move(events));
  }

  // Asks as `muster status` does. Any answer shows that the coordinator is there.
  void Ask(uint64_t number) {
    limit_.expires_after(kAttemptLimit);
    limit_.async_wait([this, number](boost::system::error_code error) {
      if (error || number != tries_ || attempt_ == nullptr) return;
      Failed(number, attempt_->connected ? "something listens there, but it does not answer as a coordinator"
                                         : "something listens there, but the TLS handshake does not end");
    });
    rendezvous::Link::Events events;
    events.connected = [this, number] {
      if (number != tries_ || attempt_ == nullptr) return;
      attempt_->connected = true;
      attempt_->link->Send(rendezvous::Inspect{});
    };
    events.message = [this, number](const rendezvous::CoordinatorMessage&) { Ready(number); };
    events.closed = [this, number](rendezvous::attendance::Loss, const std::string& detail) { Failed(number, detail); };
    attempt_->link = rendezvous::DialGrpc(shared_.loop, *shared_.queue, attempt_->resolver, target_.Address(),
                                          shared_.credentials, kDialLimit, std::move(events));
  }

  // Destroys the attempt later: this may be called from within its own callback.
  void Drop() {
    limit_.cancel();
    asio::post(shared_.loop, [attempt = std::shared_ptr<Attempt>(std::move(attempt_))] {});
  }

  void Ready(uint64_t number) {
    if (number != tries_ || attempt_ == nullptr) return;
    Drop();
    ready_ = true;
    Say(fmt::format("ready: {}, after {}", Name(), ForPeople(MonotonicClock::now() - shared_.started)));
    shared_.settled();
  }

  void Failed(uint64_t number, std::string reason) {
    if (number != tries_ || attempt_ == nullptr) return;
    Drop();
    ++failures_;
    if (reason.starts_with(target_.Address() + ": ")) reason.erase(0, target_.Address().size() + 2);  // Name() has it
    reason = StableReason(reason);
    if (reason != reason_) {
      reason_ = std::move(reason);
      if (!shared_.only_one_try) {
        Say(fmt::format("waiting for {}: {} (up to {})", Name(), NotYet(reason_, ""), ForPeople(shared_.timeout)));
      }
    }
    if (shared_.only_one_try) return shared_.settled();
    pause_.expires_after(WaitPause(failures_, std::uniform_real_distribution<>()(shared_.random)));
    pause_.async_wait([this](boost::system::error_code error) {
      if (!error) Try();
    });
  }

  Shared& shared_;
  const WaitTarget target_;
  asio::steady_timer limit_;  // for an attempt that does not end by itself
  asio::steady_timer pause_;
  std::unique_ptr<Attempt> attempt_;
  uint64_t tries_ = 0;  // the number of the attempt that counts
  int failures_ = 0;
  bool ready_ = false;
  std::string reason_;
};

int WaitForAll(Shared& shared, const std::vector<WaitTarget>& targets, Duration timeout) {
  std::vector<std::unique_ptr<Waited>> all;
  all.reserve(targets.size());
  for (const WaitTarget& target : targets) all.push_back(std::make_unique<Waited>(shared, target));
  shared.only_one_try = timeout == Duration::zero();
  shared.timeout = timeout;

  auto give_up = [&] {
    for (const auto& one : all) {
      if (one->ready()) continue;
      Say(fmt::format("gave up after {} on {}: {}", shared.only_one_try ? "one try" : ForPeople(timeout), one->Name(),
                      one->reason().empty() ? "no answer" : one->reason()));
    }
  };
  int code = 0;
  bool over = false;
  auto end = [&](int with) {
    if (std::exchange(over, true)) return;
    code = with;
    if (code == kExitRendezvousTimeout) give_up();
    shared.loop.stop();
  };

  asio::signal_set signals(shared.loop, SIGTERM, SIGINT);
  signals.async_wait([&](boost::system::error_code error, int signal) {
    if (error) return;
    Say(fmt::format("stopped by {}", SignalName(signal)));
    end(128 + signal);
  });
  asio::steady_timer deadline(shared.loop);
  if (!shared.only_one_try) {
    deadline.expires_after(timeout);
    deadline.async_wait([&](boost::system::error_code error) {
      if (!error) end(kExitRendezvousTimeout);
    });
  }
  shared.settled = [&] {
    bool ready = true;
    for (const auto& one : all) {
      if (!one->settled()) return;
      ready = ready && one->ready();
    }
    end(ready ? 0 : kExitRendezvousTimeout);
  };
  for (const auto& one : all) one->Try();
  shared.loop.run();
  return code;
}

// Each target takes a few descriptors; the soft limit is often 1,024.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int WaitCommand(const Call& call) {
  Arguments arguments("Wait until names resolve, ports are open or a coordinator answers", "muster wait");
  std::vector<std::string> texts;
  bool dns = false;
  bool tcp = false;
  bool coordinator = false;
  std::string timeout_text = "300s";
  net::CredentialFiles files;
  arguments.Texts("TARGET", &texts, "HOST or HOST:PORT; `muster wait` waits for all of them at once", true);
  arguments.Switch("--dns", &dns, "until the name resolves (default for a target without a port)");
  arguments.Switch("--tcp", &tcp, "until the port accepts connections (default for a target with a port)");
  arguments.Switch("--rendezvous", &coordinator, "until a Muster coordinator answers there; port 29400 unless given");
  arguments.Exclude("--rendezvous", "--dns");
  arguments.Exclude("--rendezvous", "--tcp");
  arguments.Exclude("--dns", "--tcp");
  arguments.Text("--timeout", &timeout_text, "such as 30, 500ms, 10m; 0 tries once", {.shows_default = true});
  AddCredentialFlags(arguments, &files);
  if (auto end = arguments.Parse(call)) return *end;

  auto timeout = ParseDuration(timeout_text);
  if (!timeout.ok()) {
    Say(fmt::format("--timeout '{}': {}", timeout_text, Message(timeout.status())));
    return kExitUsage;
  }
  std::optional<WaitKind> kind;
  if (dns) kind = WaitKind::kDns;
  if (tcp) kind = WaitKind::kTcp;
  if (coordinator) kind = WaitKind::kRendezvous;
  std::vector<WaitTarget> targets;
  bool bad = false;
  for (const std::string& text : texts) {
    auto target = ParseWaitTarget(text, kind);
    if (target.ok()) {
      if (std::find(targets.begin(), targets.end(), *target) == targets.end()) targets.push_back(*std::move(target));
    } else {
      Say(std::string(Message(target.status())));
      bad = true;
    }
  }
  if (bad) return kExitUsage;

  RaiseDescriptorLimit();
  Shared shared;
  if (coordinator) {  // other targets need no credentials, and the files may not be there yet
    auto credentials = net::ReadCredentials(files);
    if (!credentials.ok()) {
      Say(std::string(Message(credentials.status())));
      return kExitBadConfiguration;
    }
    shared.credentials = *std::move(credentials);
    shared.queue = net::MakeCallQueue(shared.loop);
  }
  return WaitForAll(shared, targets, *timeout);
}

}  // namespace muster::agent
