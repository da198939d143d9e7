// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/store/server.h"

#include <malloc.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/attach.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/text.h"
#include "rendezvous/store/commands.h"
#include "rendezvous/store/key_space.h"
#include "rendezvous/store/listener.h"
#include "rendezvous/store/protocol.h"
#include "rendezvous/store/silence.h"

namespace muster::store {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t kReadBuffer = 64 << 10;
constexpr size_t kFlushAt = 64 << 10;    // bytes of answers after which they are sent
constexpr size_t kKeepOutput = 1 << 20;  // bytes; a larger shared output buffer is freed after use
constexpr size_t kKeepSpare = 2 << 20;   // bytes; the same for the memory of a long request
constexpr size_t kKeepEvents = 1 << 20;  // bytes of events; a watcher with more still to read is closed
constexpr int kEvents = 256;             // about this many connections are served before the loop's other work
constexpr int kAccepts = 256;
constexpr int kWakes = 1024;
constexpr int kReads = 16;  // full reads of one connection before the other connections are served
constexpr uint32_t kInput = EPOLLIN | EPOLLRDHUP | EPOLLET;
constexpr uint32_t kOutput = EPOLLOUT | EPOLLET;
constexpr uint64_t kListener = 0;  // the listening socket's tag; connections' serials begin with 1
constexpr auto kRetryAccept = std::chrono::milliseconds(50);

struct Unsent {
  Buffer bytes;
  size_t sent = 0;
};

struct Connection {
  int fd = -1;
  uint32_t serial = 0;  // grows with each use of the slot, to recognise a late event of an earlier connection
  bool wake = false;    // its WAIT has ended, and the answer is not sent yet
  bool spoke = false;   // it has sent a whole request
  bool spare = false;   // it took a descriptor that is kept for other ports and for another protocol on this one
  Parser parser;
  std::unique_ptr<Unsent> unsent;  // set: nothing is read until it is sent
};

uint64_t Tag(uint32_t slot, uint32_t serial) { return uint64_t{serial} << 32 | slot; }

}  // namespace

class StoreServer::State : public std::enable_shared_from_this<State> {
 public:
  State(asio::io_context& io, StoreOptions options)
      : io_(io), set_(io), accept_again_(io), options_(std::move(options)), keys_(std::in_place) {}
  ~State() { Close(); }

  Status Start(std::string_view host, uint16_t port);
  void NewKeySpace();
  void Close();
  uint16_t port() const { return port_; }
  const StoreCounters& counters() const { return counters_; }

 private:
  void Arm();
  void OnReady();
  void Serve(const epoll_event& event);
  bool HasRoom(int more) const { return DescriptorsLeft(listener_, options_.keep_descriptors, more); }
  void Accept();
  void PauseAccepting();
  void SayOutOfDescriptors();
  void ResumeAccepting();
  void WatchListener(uint32_t events);
  void Adopt(int fd, bool spare);
  Connection* Lookup(uint64_t tag);
  bool IsSilent(uint64_t tag);
  void Read(Connection& connection, uint32_t slot, bool ending);
  bool Process(Connection& connection, uint32_t slot, std::string_view input);
  void KeepMemory();
  bool Flush(Connection& connection, uint32_t slot);
  void Drain(Connection& connection, uint32_t slot);
  void Watch(const Connection& connection, uint32_t slot, uint32_t events);
  void Wake();
  void Notify(const Connection& asking, const Event& event);
  void HandOver(Connection& connection, uint32_t slot, std::string_view input);
  int Release(Connection& connection, uint32_t slot);
  void Drop(Connection& connection, uint32_t slot);

  asio::io_context& io_;
  asio::posix::stream_descriptor set_;  // the epoll set
  asio::steady_timer accept_again_;
  StoreOptions options_;
  StoreCounters counters_;
  int listener_ = -1;
  uint16_t port_ = 0;
  bool paused_ = false;
  bool said_out_of_descriptors_ = false;  // since the last time that no connection waited to be accepted

  std::optional<KeySpace> keys_;
  std::deque<Connection> connections_;  // slots stay where they are
  std::vector<uint32_t> free_;
  Silence silence_{io_, [this](uint64_t tag) { return IsSilent(tag); },
                   [this](uint64_t tag) { Drop(*Lookup(tag), static_cast<uint32_t>(tag)); }};
  Woken wakes_;  // connections whose WAIT has ended
  size_t woken_ = 0;

  // Shared by all connections, and empty between two of them.
  Request request_;
  Output output_;
  std::array<char, kReadBuffer> buffer_;
  Buffer spare_;  // memory for the next long request: that of the last one, or of the value that it replaced
};

Status StoreServer::State::Start(std::string_view host, uint16_t port) {
  MUSTER_ASSIGN_OR_RETURN(Listener listener, OpenListener(host, port));
  listener_ = listener.socket.Release();
  port_ = listener.port;
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  if (set < 0) return ErrnoStatus(errno, "store: epoll_create1");
  MUSTER_RETURN_IF_ERROR(Attach(set_, Descriptor(set), "store: adding the epoll set to the loop"));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kListener;
  if (::epoll_ctl(set, EPOLL_CTL_ADD, listener_, &event) != 0) return ErrnoStatus(errno, "store: epoll_ctl");
  Arm();
  return absl::OkStatus();
}

void StoreServer::State::Arm() {
  set_.async_wait(asio::posix::descriptor_base::wait_read, [weak = weak_from_this()](error_code error) {
    std::shared_ptr<State> self = weak.lock();
    if (self != nullptr && !error && self->set_.is_open()) self->OnReady();
  });
}

void StoreServer::State::OnReady() {
  epoll_event events[kEvents];
  int count, served = 0;
  do {  // events that came meanwhile are served too, before control goes back to the loop
    count = ::epoll_wait(set_.native_handle(), events, kEvents, 0);
    for (int i = 0; i < count; ++i) {
      Serve(events[i]);
      if (!set_.is_open()) return;
    }
    served += count;
    Wake();
    if (!set_.is_open()) return;
  } while (count > 1 && served < kEvents && wakes_.empty());
  if (!wakes_.empty()) {
    asio::post(io_, [weak = weak_from_this()] {
      std::shared_ptr<State> self = weak.lock();
      if (self != nullptr && self->set_.is_open()) self->OnReady();
    });
  } else {
    Arm();
  }
}

void StoreServer::State::Serve(const epoll_event& event) {
  const uint64_t tag = event.data.u64;
  if (tag == kListener) return Accept();
  Connection* connection = Lookup(tag);
  if (connection == nullptr) return;  // closed a moment ago
  const uint32_t slot = static_cast<uint32_t>(tag);
  if (connection->unsent != nullptr) return Drain(*connection, slot);
  Read(*connection, slot, (event.events & ~static_cast<uint32_t>(EPOLLIN)) != 0);
}

void StoreServer::State::Accept() {
  for (int i = 0; i < kAccepts; ++i) {
    bool spare = false;  // whether it takes a descriptor that is kept for other ports
    if (!HasRoom(options_.keep_for_ports) && !(silence_.CloseAll() && HasRoom(options_.keep_for_ports))) {
      spare = options_.foreign && HasRoom(0);
      if (!spare) return PauseAccepting();
    }
    int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      Adopt(fd, spare);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      said_out_of_descriptors_ = said_out_of_descriptors_ && spare;  // no connection is left to accept
      return;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return PauseAccepting();
    }  // else that one connection failed before it was accepted
  }
}

void StoreServer::State::PauseAccepting() {
  if (paused_) return;
  paused_ = true;
  ++counters_.pauses;
  SayOutOfDescriptors();
  WatchListener(0);
  // Drop() resumes accepting. The timer is for descriptors that other parts of this process close.
  accept_again_.expires_after(kRetryAccept);
  accept_again_.async_wait([weak = weak_from_this()](error_code error) {
    std::shared_ptr<State> self = weak.lock();
    if (self != nullptr && !error) self->ResumeAccepting();
  });
}

void StoreServer::State::SayOutOfDescriptors() {
  if (std::exchange(said_out_of_descriptors_, true)) return;
  log::Warning("no file descriptor is left for a new connection to the store; raise the limit (ulimit -n)",
               {{"port", fmt::format("{}", port_)}, {"connections", fmt::format("{}", counters_.open)}});
}

void StoreServer::State::ResumeAccepting() {
  if (!paused_ || listener_ < 0) return;
  paused_ = false;
  accept_again_.cancel();
  WatchListener(EPOLLIN);
}

void StoreServer::State::WatchListener(uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = kListener;
  ::epoll_ctl(set_.native_handle(), EPOLL_CTL_MOD, listener_, &event);
}

void StoreServer::State::Adopt(int fd, bool spare) {
  uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(connections_.size());
    connections_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  Connection& connection = connections_[slot];
  connection.fd = fd;
  if (++connection.serial == 0) connection.serial = 1;
  epoll_event event{};
  event.events = kInput;
  event.data.u64 = Tag(slot, connection.serial);
  ++counters_.accepted;
  ++counters_.open;
  if (::epoll_ctl(set_.native_handle(), EPOLL_CTL_ADD, fd, &event) != 0) return Drop(connection, slot);
  connection.spoke = false;
  connection.spare = spare;
  silence_.Add(event.data.u64, counters_.open);
}

bool StoreServer::State::IsSilent(uint64_t tag) {
  const Connection* connection = Lookup(tag);
  return connection != nullptr && !connection->spoke;
}

Connection* StoreServer::State::Lookup(uint64_t tag) {
  uint32_t slot = static_cast<uint32_t>(tag);
  if (slot >= connections_.size()) return nullptr;
  Connection& connection = connections_[slot];
  return connection.fd >= 0 && connection.serial == static_cast<uint32_t>(tag >> 32) ? &connection : nullptr;
}

// The epoll set is edge-triggered, so this must read until the socket is empty. A read that does not fill its room has
// emptied it. At the end of a stream (`ending`) it reads until recv reports the end.
void StoreServer::State::Read(Connection& connection, uint32_t slot, bool ending) {
  for (int i = 0; i < kReads; ++i) {
    std::span<char> direct = connection.parser.Tail(&spare_);
    // At most kReadBuffer at a time: TCP acknowledges what is read, and a sender that paces (BBR) goes by that.
    std::span<char> room = direct.empty() ? std::span<char>(buffer_) : direct;
    room = room.first(std::min(room.size(), kReadBuffer));
    ssize_t count = ::recv(connection.fd, room.data(), room.size(), 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Drop(connection, slot);
    size_t bytes = static_cast<size_t>(count);
    if (!direct.empty()) connection.parser.Commit(bytes);
    if (!Process(connection, slot, direct.empty() ? std::string_view(buffer_.data(), bytes) : std::string_view()))
      return;
    if (bytes < room.size() && !ending) return;
  }
  Watch(connection, slot, kInput);  // there may be more: arms the event again
}

// Executes the requests in the kept input and in `input`. False: the connection is gone, or must not be read for now.
bool StoreServer::State::Process(Connection& connection, uint32_t slot, std::string_view input) {
  const WaiterId id = Tag(slot, connection.serial);
  if (connection.wake) {  // the answer to its WAIT comes before the answers to this input
    connection.wake = false;
    output_.bytes.push_back(static_cast<char>(kStopWaiting));
  }
  for (;;) {
    Parser::Result result = connection.parser.Next(&input, &request_);
    if (result == Parser::Result::kNeedMore) break;
    if (result == Parser::Result::kForeign) {
      HandOver(connection, slot, input);
      return false;
    }
    const bool turned_away = !std::exchange(connection.spoke, true) && connection.spare;
    if (turned_away) SayOutOfDescriptors();
    const char* why = turned_away                            ? "no descriptor is left"
                      : result == Parser::Result::kViolation ? request_.why
                                                             : Execute(&request_, id, &*keys_, &output_);
    for (WaiterId waiter : output_.woken) {
      if (Connection* other = Lookup(waiter)) {
        other->wake = true;
        wakes_.push_back(waiter);
      }
    }
    output_.woken.clear();
    if (output_.woken.capacity() > kWakes) output_.woken.shrink_to_fit();
    for (const Event& event : output_.events) Notify(connection, event);
    output_.events.clear();
    if (request_.bytes.capacity() > 0) KeepMemory();
    if (*why != 0) {
      ++counters_.violations;
      output_.bytes.clear();
      output_.tail = {};
      Drop(connection, slot);
      return false;
    }
    ++counters_.operations;
    if (output_.bytes.size() < kFlushAt && output_.tail.empty()) continue;
    if (!Flush(connection, slot)) return false;
    if (connection.unsent != nullptr) {
      connection.parser.Keep(input);
      return false;
    }
  }
  return output_.bytes.empty() || (Flush(connection, slot) && connection.unsent == nullptr);
}

void StoreServer::State::KeepMemory() {
  Buffer memory = std::move(request_.bytes);
  if (memory.capacity() <= kKeepSpare && memory.capacity() > spare_.capacity()) spare_.swap(memory);
}

// Sends what is in output_ and empties it. False: the connection is gone.
bool StoreServer::State::Flush(Connection& connection, uint32_t slot) {
  std::string_view head = output_.bytes, tail = output_.tail;
  ssize_t sent;
  if (tail.empty()) {
    sent = ::send(connection.fd, head.data(), head.size(), MSG_NOSIGNAL);
  } else {
    iovec parts[2] = {{const_cast<char*>(head.data()), head.size()}, {const_cast<char*>(tail.data()), tail.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    sent = ::sendmsg(connection.fd, &message, MSG_NOSIGNAL);
  }
  bool gone = sent < 0 && errno != EAGAIN && errno != EINTR;
  size_t done = sent < 0 ? 0 : static_cast<size_t>(sent);
  if (!gone && done < head.size() + tail.size()) {
    connection.unsent = std::make_unique<Unsent>();
    Buffer& rest = connection.unsent->bytes;
    rest.Reserve(head.size() + tail.size() - done);
    if (done < head.size()) rest.Append(head.substr(done));
    rest.Append(tail.substr(done > head.size() ? done - head.size() : 0));
    Watch(connection, slot, kOutput);
  }
  output_.bytes.clear();
  output_.tail = {};
  if (output_.bytes.capacity() > kKeepOutput) output_.bytes.shrink_to_fit();
  if (gone) Drop(connection, slot);
  return !gone;
}

void StoreServer::State::Drain(Connection& connection, uint32_t slot) {
  Unsent& unsent = *connection.unsent;
  while (unsent.sent < unsent.bytes.size()) {
    std::string_view rest = unsent.bytes.view().substr(unsent.sent);
    ssize_t sent = ::send(connection.fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      unsent.sent += static_cast<size_t>(sent);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      return Drop(connection, slot);
    }
  }
  connection.unsent = nullptr;
  if (Process(connection, slot, {})) Watch(connection, slot, kInput);  // first the kept input, then new input
}

void StoreServer::State::Watch(const Connection& connection, uint32_t slot, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = Tag(slot, connection.serial);
  ::epoll_ctl(set_.native_handle(), EPOLL_CTL_MOD, connection.fd, &event);
}

void StoreServer::State::Wake() {
  for (int i = 0; i < kWakes && woken_ < wakes_.size(); ++i) {
    WaiterId id = wakes_[woken_++];
    Connection* connection = Lookup(id);
    if (connection == nullptr || !connection->wake) continue;
    if (connection->unsent != nullptr) continue;  // Drain() sends it later
    connection->wake = false;
    output_.bytes.push_back(static_cast<char>(kStopWaiting));
    Flush(*connection, static_cast<uint32_t>(id));
  }
  if (woken_ < wakes_.size()) return;
  woken_ = 0;
  wakes_.clear();
  if (wakes_.capacity() <= kWakes) return;
  wakes_.shrink_to_fit();
  ::malloc_trim(0);  // many small pieces of many waiters: malloc would keep them
}

// Sends an event to a watcher; to the asking connection after its answer.
void StoreServer::State::Notify(const Connection& asking, const Event& event) {
  Connection* watcher = Lookup(event.to);
  if (watcher == nullptr) return;
  if (watcher == &asking) {
    output_.bytes.append(event.bytes);
    return;
  }
  const uint32_t slot = static_cast<uint32_t>(event.to);
  std::string_view rest = event.bytes;
  if (watcher->unsent == nullptr) {
    ssize_t sent = ::send(watcher->fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return Drop(*watcher, slot);
    if (sent > 0) rest.remove_prefix(static_cast<size_t>(sent));
    if (rest.empty()) return;
    watcher->unsent = std::make_unique<Unsent>();
    Watch(*watcher, slot, kOutput);
  }
  Unsent& unsent = *watcher->unsent;
  if (unsent.sent > 0) unsent.bytes.DropFront(std::exchange(unsent.sent, 0));
  if (unsent.bytes.size() > kKeepEvents) return Drop(*watcher, slot);
  unsent.bytes.Append(rest);
}

void StoreServer::State::HandOver(Connection& connection, uint32_t slot, std::string_view input) {
  ++counters_.foreign;
  if (!options_.foreign) return Drop(connection, slot);
  std::string first_bytes(input);
  auto socket = SocketOf(io_, Descriptor(Release(connection, slot)));
  if (socket) options_.foreign(*std::move(socket), std::move(first_bytes));
}

// Forgets the connection. The caller owns the returned descriptor.
int StoreServer::State::Release(Connection& connection, uint32_t slot) {
  keys_->Leave(Tag(slot, connection.serial));
  ::epoll_ctl(set_.native_handle(), EPOLL_CTL_DEL, connection.fd, nullptr);
  int fd = std::exchange(connection.fd, -1);
  connection.wake = false;
  connection.parser = Parser();
  connection.unsent = nullptr;
  free_.push_back(slot);
  --counters_.open;
  return fd;
}

void StoreServer::State::Drop(Connection& connection, uint32_t slot) {
  ::close(Release(connection, slot));
  ResumeAccepting();
}

void StoreServer::State::NewKeySpace() {
  if (!set_.is_open()) return;
  keys_.emplace();
  for (uint32_t slot = 0; slot < connections_.size(); ++slot) {
    if (connections_[slot].fd >= 0) Drop(connections_[slot], slot);
  }
  wakes_.clear();
  woken_ = 0;
  // Connections in the backlog are of the last round too, since no node has been told of the next one yet.
  for (;;) {
    int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) break;
    ::close(fd);
  }
}

void StoreServer::State::Close() {
  if (!set_.is_open()) {
    if (listener_ >= 0) ::close(std::exchange(listener_, -1));
    return;
  }
  accept_again_.cancel();
  silence_.End();
  if (listener_ >= 0) ::close(std::exchange(listener_, -1));
  for (uint32_t slot = 0; slot < connections_.size(); ++slot) {
    if (connections_[slot].fd >= 0) Drop(connections_[slot], slot);
  }
  keys_.emplace();
  error_code ignored;
  set_.close(ignored);
}

StatusOr<std::unique_ptr<StoreServer>> StoreServer::Listen(asio::io_context& io, std::string_view host, uint16_t port,
                                                           StoreOptions options) {
  auto state = std::make_shared<State>(io, std::move(options));
  MUSTER_RETURN_IF_ERROR(state->Start(host, port));
  return std::unique_ptr<StoreServer>(new StoreServer(std::move(state)));
}

StoreServer::StoreServer(std::shared_ptr<State> state) : state_(std::move(state)) {}
StoreServer::~StoreServer() { state_->Close(); }
uint16_t StoreServer::port() const { return state_->port(); }
void StoreServer::NewKeySpace() { state_->NewKeySpace(); }
void StoreServer::Close() { state_->Close(); }
StoreCounters StoreServer::counters() const { return state_->counters(); }

}  // namespace muster::store
