// SPDX-License-Identifier: Apache-2.0
#include "net/dns_lookup.h"

#include <ares.h>
#include <netinet/in.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/environment.h"
#include "base/host_names.h"
#include "base/text.h"

namespace muster::net {

namespace asio = boost::asio;
using Addresses = std::vector<asio::ip::address>;

namespace {

constexpr std::string_view kResolvConf = "/etc/resolv.conf";
constexpr std::streamsize kMaxResolvConf = 64 << 10;
// Time for the other record type after an address. RFC 8305, 3, has 50 ms, but a pod's server may ask another first.
constexpr Duration kOtherFamily = std::chrono::milliseconds(500);
// The same after "no such name" for A: then the name has no other record either (RFC 8020).
constexpr Duration kOtherFamilyOfNoName = std::chrono::milliseconds(50);
constexpr Duration kLongestFirstTry = std::chrono::seconds(2);
constexpr Duration kShortestTry = std::chrono::milliseconds(100);
constexpr int kTries = 3;

constexpr size_t kMaxDomains = 32;
constexpr int kMaxDots = 15;  // resolv.conf(5)

void ReadDomains(std::span<const std::string_view> words, SearchRules* rules) {
  rules->domains.clear();
  for (std::string_view word : words) {
    while (word.ends_with('.')) word.remove_suffix(1);
    if (rules->domains.size() < kMaxDomains) rules->domains.emplace_back(word);
  }
}

void ReadOptions(std::span<const std::string_view> words, SearchRules* rules) {
  for (std::string_view word : words) {
    if (!word.starts_with("ndots:")) continue;
    std::optional<int64_t> ndots = ParseInt(word.substr(6));
    if (ndots && *ndots >= 0) rules->ndots = static_cast<int>(std::min<int64_t>(*ndots, kMaxDots));
  }
}

std::string FirstPart(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxResolvConf, '\0');
  file.read(text.data(), kMaxResolvConf);
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

std::optional<asio::ip::address> FromSocketAddress(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof v4);
    return asio::ip::address_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, address, sizeof v6);
    asio::ip::address_v6::bytes_type bytes;
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return asio::ip::address_v6(bytes, v6.sin6_scope_id);
  }
  return std::nullopt;
}

}  // namespace

SearchRules ReadSearchRules(std::string_view text, std::string_view localdomain, std::string_view res_options,
                            std::string_view host_name) {
  SearchRules rules;
  if (size_t dot = host_name.find('.'); dot != std::string_view::npos) {
    const std::string_view domain = host_name.substr(dot + 1);
    ReadDomains({&domain, 1}, &rules);
  }
  for (std::string_view line : Split(text, '\n')) {
    const std::vector<std::string_view> words = Words(line);
    if (words.size() < 2) continue;
    const std::span<const std::string_view> values(words.begin() + 1, words.end());
    if (words.front() == "search") ReadDomains(values, &rules);
    if (words.front() == "domain") ReadDomains(values.first(1), &rules);
    if (words.front() == "options") ReadOptions(values, &rules);
  }
  if (const auto words = Words(localdomain); !words.empty()) ReadDomains(words, &rules);
  ReadOptions(Words(res_options), &rules);
  return rules;
}

std::vector<std::string> CompleteNames(const std::string& name, const SearchRules& rules) {
  if (name.ends_with('.')) return {name};
  std::vector<std::string> names;
  const bool as_it_is_first = std::count(name.begin(), name.end(), '.') >= rules.ndots;
  if (as_it_is_first) names.push_back(name + ".");
  for (const std::string& domain : rules.domains) {
    std::string complete = domain.empty() ? name + "." : fmt::format("{}.{}.", name, domain);
    if (std::find(names.begin(), names.end(), complete) == names.end()) names.push_back(std::move(complete));
  }
  if (std::find(names.begin(), names.end(), name + ".") == names.end()) names.push_back(name + ".");
  return names;
}

Duration PatienceFor(Heard a, Heard aaaa, Duration left) {
  if (a != Heard::kNothing && aaaa != Heard::kNothing) return Duration::zero();
  // Keep half of the rest for the caller, which uses the address within the same limit.
  if (a == Heard::kAddresses || aaaa == Heard::kAddresses) return std::min<Duration>(kOtherFamily, left / 2);
  if (a == Heard::kNoName) return std::min<Duration>(kOtherFamilyOfNoName, left / 2);
  return left;
}

Duration FirstTry(Duration limit) { return std::clamp<Duration>(limit / 3, kShortestTry, kLongestFirstTry); }

class DnsLookUp::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, Options options, std::string name, Duration limit, Done done)
      : loop_(loop),
        options_(std::move(options)),
        name_(std::move(name)),
        limit_(limit),
        deadline_(MonotonicClock::now() + limit),
        done_(std::move(done)),
        ares_timer_(loop),
        patience_(loop) {}
  ~Impl() { Stop(); }

  void Begin() {
    if (Status status = Open(); !status.ok()) return End(status);
    const Environment environment = Environment::OfProcess();
    names_ = CompleteNames(name_, ReadSearchRules(FirstPart(ResolvConf()), environment.Get("LOCALDOMAIN").value_or(""),
                                                  environment.Get("RES_OPTIONS").value_or(""), HostName()));
    Ask();
  }

  void Stop() {
    done_ = nullptr;
    ares_timer_.cancel();
    patience_.cancel();
    sockets_.clear();
    if (channel_ != nullptr) {
      ares_destroy(std::exchange(channel_, nullptr));  // calls Answered with ARES_EDESTRUCTION
      ares_library_cleanup();
    }
  }

 private:
  enum Family { kV4, kV6 };
  // The argument of a c-ares query. c-ares calls back for each before the channel is destroyed; `owner` lives longer.
  struct Question {
    Impl* owner;
    size_t at;
    Family family;
  };
  // A socket that c-ares owns. It is released here, never closed.
  struct Socket {
    Socket(asio::io_context& loop, int fd) : descriptor(loop, fd) {}
    ~Socket() { descriptor.release(); }
    asio::posix::stream_descriptor descriptor;
    bool want_read = false;
    bool want_write = false;
    bool reading = false;
    bool writing = false;
  };

  std::string ResolvConf() const {
    return options_.resolv_conf.empty() ? std::string(kResolvConf) : options_.resolv_conf;
  }

  Status Open() {
    int error = ares_library_init(ARES_LIB_INIT_ALL);
    if (error != ARES_SUCCESS) return absl::InternalError(fmt::format("c-ares: {}", ares_strerror(error)));
    ares_options options{};
    int mask = ARES_OPT_SOCK_STATE_CB | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_DOMAINS |
               ARES_OPT_RESOLVCONF;
    options.sock_state_cb = &Impl::SocketChanged;
    options.sock_state_cb_data = this;
    options.timeout = static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(FirstTry(limit_)).count());
    options.tries = kTries;
    char lookups[] = "b";  // DNS only: Resolver has read the hosts file
    options.lookups = lookups;
    std::string path = ResolvConf();
    options.resolvconf_path = path.data();
    if (options_.port != 0) {
      mask |= ARES_OPT_UDP_PORT | ARES_OPT_TCP_PORT;
      options.udp_port = options.tcp_port = static_cast<unsigned short>(options_.port);
    }
    error = ares_init_options(&channel_, &options, mask);  // no domains: CompleteNames() adds them
    if (error == ARES_SUCCESS && !options_.servers.empty()) {
      error = ares_set_servers_ports_csv(channel_, options_.servers.c_str());
    }
    if (error == ARES_SUCCESS) return absl::OkStatus();
    if (channel_ != nullptr) ares_destroy(std::exchange(channel_, nullptr));
    ares_library_cleanup();
    return absl::UnavailableError(fmt::format("the name resolver cannot start: {}", ares_strerror(error)));
  }

  void Ask() {
    for (Family family : {kV4, kV6}) {
      heard_[family] = Heard::kNothing;
      addresses_[family].clear();
    }
    for (Family family : {kV4, kV6}) {
      ares_addrinfo_hints hints{};
      hints.ai_family = family == kV4 ? AF_INET : AF_INET6;
      hints.ai_socktype = SOCK_STREAM;
      hints.ai_flags = ARES_AI_NOSORT;
      // c-ares may call Answered before it returns.
      ares_getaddrinfo(channel_, names_[at_].c_str(), nullptr, &hints, &Impl::Answered,
                       new Question{this, at_, family});
    }
    Weigh(at_);
    ArmTimer();
  }

  static void Answered(void* argument, int status, int, ares_addrinfo* found) {
    std::unique_ptr<Question> question(static_cast<Question*>(argument));
    std::unique_ptr<ares_addrinfo, void (*)(ares_addrinfo*)> result(found, &ares_freeaddrinfo);
    Impl& self = *question->owner;
    if (self.channel_ == nullptr || question->at != self.at_) return;  // being destroyed, or cancelled
    Addresses& addresses = self.addresses_[question->family];
    for (const ares_addrinfo_node* node = result ? result->nodes : nullptr; node != nullptr; node = node->ai_next) {
      std::optional<asio::ip::address> address = FromSocketAddress(node->ai_addr);
      if (!address || addresses.size() == kMaxAddresses) continue;
      if (std::find(addresses.begin(), addresses.end(), *address) == addresses.end()) addresses.push_back(*address);
    }
    Heard& heard = self.heard_[question->family];
    if (!addresses.empty()) {
      heard = Heard::kAddresses;
    } else if (status == ARES_SUCCESS || status == ARES_ENODATA) {
      heard = Heard::kNoData;
    } else if (status == ARES_ENOTFOUND || status == ARES_EBADNAME) {
      heard = Heard::kNoName;
    } else {
      heard = Heard::kFailed;
      self.why_[question->family] = status;
    }
    asio::post(self.loop_, [weak = self.weak_from_this(), at = question->at] {
      if (auto again = weak.lock()) again->Weigh(at);
    });
  }

  // Called after each answer: waits for the other record type, or decides.
  void Weigh(size_t at) {
    if (at != at_ || ended_) return;
    const Duration left = std::max<Duration>(deadline_ - MonotonicClock::now(), Duration::zero());
    patience_.expires_after(PatienceFor(heard_[kV4], heard_[kV6], left));
    patience_.async_wait([weak = weak_from_this(), at](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (self && !error && self->done_ && at == self->at_) self->Decide();
    });
  }

  void Decide() {
    if (ended_) return;
    Addresses all = std::move(addresses_[kV4]);
    all.insert(all.end(), addresses_[kV6].begin(), addresses_[kV6].end());
    if (!all.empty()) {
      all.resize(std::min(all.size(), kMaxAddresses));
      return End(std::move(all));
    }
    auto absent = [this](Family family) {
      return heard_[family] == Heard::kNoName || heard_[family] == Heard::kNoData;
    };
    if (heard_[kV4] != Heard::kNoName && !(absent(kV4) && absent(kV6))) failure_ = Failure();
    ++at_;
    if (at_ == names_.size() || MonotonicClock::now() >= deadline_) {
      return End(!failure_.ok() ? failure_ : absl::NotFoundError(fmt::format("the name \"{}\" is not known", name_)));
    }
    ares_cancel(channel_);
    Ask();
  }

  // The error if it is unknown whether this name exists.
  Status Failure() const {
    for (Family family : {kV4, kV6}) {
      if (heard_[family] != Heard::kFailed || why_[family] == ARES_ETIMEOUT) continue;
      return absl::UnavailableError(
          fmt::format("the name \"{}\" cannot be looked up: {}", name_, ares_strerror(why_[family])));
    }
    std::string_view half = heard_[kV4] == Heard::kNoData   ? " (it has no IPv4 address, maybe an IPv6 address)"
                            : heard_[kV6] == Heard::kNoData ? " (it has no IPv6 address, maybe an IPv4 address)"
                                                            : "";
    return absl::DeadlineExceededError(fmt::format("no name server answered in time for \"{}\"{}", name_, half));
  }

  void End(StatusOr<Addresses> result) {
    ended_ = true;
    patience_.cancel();
    asio::post(loop_, [weak = weak_from_this(), result = std::move(result)]() mutable {
      auto self = weak.lock();
      if (!self || !self->done_) return;
      Done done = std::exchange(self->done_, nullptr);
      done(std::move(result));
    });
  }

  static void SocketChanged(void* data, ares_socket_t fd, int readable, int writable) {
    Impl& self = *static_cast<Impl*>(data);
    if (self.channel_ == nullptr) return;  // being destroyed
    if (!readable && !writable) {
      self.sockets_.erase(fd);
      return;
    }
    std::shared_ptr<Socket>& socket = self.sockets_[fd];
    if (socket == nullptr) socket = std::make_shared<Socket>(self.loop_, fd);
    socket->want_read = readable != 0;
    socket->want_write = writable != 0;
    self.Wait(fd, socket);
  }

  void Wait(int fd, const std::shared_ptr<Socket>& socket) {
    if (socket->want_read && !socket->reading) {
      socket->reading = true;
      socket->descriptor.async_wait(asio::posix::descriptor_base::wait_read, Ready(fd, socket, true));
    }
    if (socket->want_write && !socket->writing) {
      socket->writing = true;
      socket->descriptor.async_wait(asio::posix::descriptor_base::wait_write, Ready(fd, socket, false));
    }
  }

  std::function<void(const boost::system::error_code&)> Ready(int fd, const std::shared_ptr<Socket>& socket,
                                                              bool read) {
    return [weak = weak_from_this(), weak_socket = std::weak_ptr<Socket>(socket), fd,
            read](const boost::system::error_code& error) {
      auto self = weak.lock();
      auto ready = weak_socket.lock();
      if (!self || !ready || error || self->channel_ == nullptr) return;
      (read ? ready->reading : ready->writing) = false;
      ares_process_fd(self->channel_, read ? fd : ARES_SOCKET_BAD, read ? ARES_SOCKET_BAD : fd);
      auto still = self->sockets_.find(fd);
      if (still != self->sockets_.end() && still->second == ready) self->Wait(fd, ready);
      self->ArmTimer();
    };
  }

  // Wakes c-ares for its retries and time-outs.
  void ArmTimer() {
    if (channel_ == nullptr) return;
    timeval storage{};
    timeval* next = ares_timeout(channel_, nullptr, &storage);
    if (next == nullptr) {
      ares_timer_.cancel();
      return;
    }
    ares_timer_.expires_after(std::chrono::seconds(next->tv_sec) + std::chrono::microseconds(next->tv_usec));
    ares_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (!self || error || self->channel_ == nullptr) return;
      ares_process_fd(self->channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
      self->ArmTimer();
    });
  }

  asio::io_context& loop_;
  const Options options_;
  const std::string name_;
  const Duration limit_;
  const TimePoint deadline_;
  Done done_;
  bool ended_ = false;
  ares_channel channel_ = nullptr;
  asio::steady_timer ares_timer_;
  std::map<int, std::shared_ptr<Socket>> sockets_;

  std::vector<std::string> names_;
  size_t at_ = 0;  // index of the name that is asked for
  std::array<Heard, 2> heard_{};
  std::array<int, 2> why_{};  // status of c-ares if kFailed
  std::array<Addresses, 2> addresses_;
  asio::steady_timer patience_;
  Status failure_;  // of the last name that failed
};

std::unique_ptr<DnsLookUp> DnsLookUp::Start(asio::io_context& loop, const Options& options, const std::string& name,
                                            Duration limit, Done done) {
  auto impl = std::make_shared<Impl>(loop, options, name, limit, std::move(done));
  impl->Begin();
  return std::unique_ptr<DnsLookUp>(new DnsLookUp(std::move(impl)));
}
DnsLookUp::DnsLookUp(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
DnsLookUp::~DnsLookUp() { impl_->Stop(); }

}  // namespace muster::net
