#include "net/resolver.h"

#include <ares.h>
#include <netinet/in.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "base/text.h"

namespace muster::net {

namespace asio = boost::asio;
using Addresses = std::vector<asio::ip::address>;

namespace {

constexpr size_t kMaxHostsFile = size_t{4} << 20;
constexpr size_t kMaxAddresses = 16;

std::optional<asio::ip::address> Numeric(std::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  boost::system::error_code error;
  asio::ip::address address = asio::ip::make_address(std::string(text), error);
  if (error) return std::nullopt;
  return address;
}

bool IsName(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return c > ' ' && c < 0x7f && c != ':' && c != '/'; });
}

// hosts(5): address, names; '#' starts a comment.
Addresses FromHosts(const std::string& path, const std::string& name) {
  Addresses addresses;
  std::ifstream file(path);
  std::string line;
  size_t seen = 0;
  while (std::getline(file, line) && (seen += line.size()) < kMaxHostsFile) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    if (!(words >> word)) continue;
    std::optional<asio::ip::address> address = Numeric(word);
    if (!address) continue;
    while (words >> word) {
      if (Lower(word) != name) continue;
      if (std::find(addresses.begin(), addresses.end(), *address) == addresses.end()) addresses.push_back(*address);
      break;
    }
    if (addresses.size() == kMaxAddresses) break;
  }
  return addresses;
}

}  // namespace

class Resolver::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, Options options) : loop_(loop), options_(std::move(options)), ares_timer_(loop) {}
  ~Impl() { Stop(); }

  void Resolve(const std::string& given, Duration limit, Done done) {
    if (std::optional<asio::ip::address> address = Numeric(given)) return Answer(std::move(done), Addresses{*address});
    std::string name = Lower(given);
    if (!name.empty() && name.back() == '.') name.pop_back();
    if (!IsName(name)) {
      return Answer(std::move(done), absl::InvalidArgumentError(fmt::format("\"{}\" is no host name", given)));
    }
    if (name == "localhost" || name.ends_with(".localhost")) {  // RFC 6761; c-ares would ask a server for it
      return Answer(std::move(done), Addresses{asio::ip::address_v4::loopback(), asio::ip::address_v6::loopback()});
    }
    if (Addresses addresses = FromHosts(options_.hosts_file, name); !addresses.empty()) {
      return Answer(std::move(done), std::move(addresses));
    }
    if (Status status = Open(); !status.ok()) return Answer(std::move(done), status);

    uint64_t id = next_query_++;
    auto& query = queries_.emplace(id, Query{given, std::move(done), asio::steady_timer(loop_)}).first->second;
    query.timer.expires_after(limit);
    query.timer.async_wait([weak = weak_from_this(), id](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (self && !error) self->TimedOut(id);
    });
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = ARES_AI_NOSORT;
    // The callback may come from within this call.
    ares_getaddrinfo(channel_, given.c_str(), nullptr, &hints, &Impl::Answered, new Ask{weak_from_this(), id});
    ArmTimer();
  }

  void Stop() {
    queries_.clear();
    ares_timer_.cancel();
    sockets_.clear();
    if (channel_ != nullptr) {
      ares_destroy(std::exchange(channel_, nullptr));  // calls Answered with ARES_EDESTRUCTION
      ares_library_cleanup();
    }
  }

 private:
  struct Query {
    std::string name;
    Done done;
    asio::steady_timer timer;
  };
  struct Ask {
    std::weak_ptr<Impl> owner;
    uint64_t id;
  };
  // One of c-ares's sockets. It belongs to c-ares: released here, never closed.
  struct Socket {
    Socket(asio::io_context& loop, int fd) : descriptor(loop, fd) {}
    ~Socket() { descriptor.release(); }
    asio::posix::stream_descriptor descriptor;
    bool want_read = false;
    bool want_write = false;
    bool reading = false;
    bool writing = false;
  };

  void Answer(Done done, StatusOr<Addresses> result) {
    asio::post(loop_, [weak = weak_from_this(), done = std::move(done), result = std::move(result)]() mutable {
      if (weak.lock()) done(std::move(result));
    });
  }

  Status Open() {
    if (channel_ != nullptr) return absl::OkStatus();
    int error = ares_library_init(ARES_LIB_INIT_ALL);
    if (error != ARES_SUCCESS) return absl::InternalError(fmt::format("c-ares: {}", ares_strerror(error)));
    ares_options options{};
    options.sock_state_cb = &Impl::SocketChanged;
    options.sock_state_cb_data = this;
    options.timeout = 2000;  // of the first try; the deadline of the query is the caller's
    options.tries = 3;
    char lookups[] = "b";  // DNS only: the hosts file was read
    options.lookups = lookups;
    error = ares_init_options(&channel_, &options,
                              ARES_OPT_SOCK_STATE_CB | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS);
    if (error == ARES_SUCCESS && !options_.dns_servers.empty()) {
      error = ares_set_servers_ports_csv(channel_, options_.dns_servers.c_str());
    }
    if (error != ARES_SUCCESS) {
      if (channel_ != nullptr) ares_destroy(std::exchange(channel_, nullptr));
      ares_library_cleanup();
      return absl::UnavailableError(fmt::format("the name resolver cannot start: {}", ares_strerror(error)));
    }
    return absl::OkStatus();
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

  // c-ares's own retries.
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

  void TimedOut(uint64_t id) {
    auto found = queries_.find(id);
    if (found == queries_.end()) return;
    Query query = std::move(found->second);
    queries_.erase(found);
    if (queries_.empty()) ares_cancel(channel_);
    query.done(absl::DeadlineExceededError(fmt::format("no name server answered in time for \"{}\"", query.name)));
  }

  static void Answered(void* argument, int status, int, ares_addrinfo* found) {
    std::unique_ptr<Ask> ask(static_cast<Ask*>(argument));
    Addresses addresses;
    if (status == ARES_SUCCESS && found != nullptr) {
      for (const ares_addrinfo_node* node = found->nodes; node != nullptr; node = node->ai_next) {
        std::optional<asio::ip::address> address = FromSocketAddress(node->ai_addr);
        if (!address || addresses.size() == kMaxAddresses) continue;
        if (std::find(addresses.begin(), addresses.end(), *address) == addresses.end()) addresses.push_back(*address);
      }
    }
    if (found != nullptr) ares_freeaddrinfo(found);
    auto self = ask->owner.lock();
    if (!self) return;
    auto query = self->queries_.find(ask->id);
    if (query == self->queries_.end()) return;  // its time was over
    std::string name = query->second.name;
    Done done = std::move(query->second.done);
    self->queries_.erase(query);
    if (!addresses.empty()) {
      self->Answer(std::move(done), std::move(addresses));
    } else if (status == ARES_SUCCESS || status == ARES_ENOTFOUND || status == ARES_ENODATA) {
      self->Answer(std::move(done), absl::NotFoundError(fmt::format("the name \"{}\" is not known", name)));
    } else if (status == ARES_ETIMEOUT) {
      self->Answer(std::move(done),
                   absl::DeadlineExceededError(fmt::format("no name server answered in time for \"{}\"", name)));
    } else {
      self->Answer(std::move(done), absl::UnavailableError(fmt::format("the name \"{}\" cannot be looked up: {}", name,
                                                                       ares_strerror(status))));
    }
  }

  static std::optional<asio::ip::address> FromSocketAddress(const sockaddr* address) {
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

  asio::io_context& loop_;
  const Options options_;
  ares_channel channel_ = nullptr;
  asio::steady_timer ares_timer_;
  std::map<int, std::shared_ptr<Socket>> sockets_;
  uint64_t next_query_ = 1;
  std::map<uint64_t, Query> queries_;
};

Resolver::Resolver(asio::io_context& loop, Options options) : impl_(std::make_shared<Impl>(loop, std::move(options))) {}
Resolver::~Resolver() { impl_->Stop(); }

void Resolver::Resolve(const std::string& name, Duration limit, Done done) {
  impl_->Resolve(name, limit, std::move(done));
}

}  // namespace muster::net
