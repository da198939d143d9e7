// SPDX-License-Identifier: Apache-2.0
#include "http/server.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <iterator>
#include <list>
#include <optional>
#include <span>

#include "base/host_names.h"
#include "base/text.h"
#include "http/plain_stream.h"
#include "http/server_rules.h"

namespace muster::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr uint32_t kHeaderLimit = 8 << 10;
constexpr size_t kUnknownBody = 16 << 10;  // longest body in bytes for an unknown path
constexpr size_t kReadSize = 16 << 10;
constexpr auto kLinger = std::chrono::seconds(5);  // how long a refused client may still send
constexpr auto kRetryAccept = std::chrono::milliseconds(100);
constexpr char kTooMuch[] = "too many bytes of requests are held; try again";

std::string_view View(boost::core::string_view text) { return {text.data(), text.size()}; }

std::string_view ReasonPhrase(int status) { return View(beast::obsolete_reason(static_cast<beast::status>(status))); }

Server::Response Text(int status, std::string text) { return {status, "text/plain; charset=utf-8", std::move(text)}; }

}  // namespace

std::optional<std::string_view> Server::Request::Find(std::string_view name) const { return FindHeader(headers, name); }

class Server::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, Routes routes, Options options)
      : loop_(loop), acceptor_(loop), accept_again_(loop), routes_(std::move(routes)), options_(std::move(options)) {}

  Status Start(const std::string& host, uint16_t port);
  void Close();
  uint16_t port() const { return port_; }
  size_t connections() const { return sessions_.size(); }

 private:
  class Session;

  error_code Bind(const tcp::endpoint& endpoint, bool dual_stack);
  void Accept();
  void AcceptIfThereIsRoom() {
    if (std::exchange(full_, false)) Accept();
  }
  // Null: none yields.
  std::shared_ptr<Session> Yielding(std::optional<size_t> (*rule)(std::span<const Guest>)) const;
  void Admit(tcp::socket socket);
  void Forget(const Session* session);
  // Counts `more` bytes (it may be negative) of `session`. False: `session` has to end, since there is no room.
  bool Count(const Session* session, std::ptrdiff_t more);
  const Route* Find(std::string_view path) const;  // null: no such path
  Response NotFound() const;

  asio::io_context& loop_;
  tcp::acceptor acceptor_;
  asio::steady_timer accept_again_;
  const Routes routes_;
  const Options options_;
  uint16_t port_ = 0;
  bool full_ = false;  // all connections are being answered: none is accepted
  size_t memory_ = 0;  // bytes of all requests
  std::list<std::shared_ptr<Session>> sessions_;
};

class Server::Impl::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(const std::shared_ptr<Impl>& port, std::unique_ptr<ServerStream> stream, std::string address)
      : port_(port),
        request_limit_(port->options_.request),
        idle_limit_(port->options_.idle),
        stream_(std::move(stream)),
        address_(std::move(address)),
        deadline_(port->loop_) {}

  Guest guest() const { return {address_, stage_, since_, bytes_}; }

  void Begin() {
    Enter(Stage::kNew);
    Until(since_ + request_limit_);
    stream_->Begin([self = shared_from_this()](error_code error) { error ? self->End() : self->Next(); });
  }

  void Close() {
    closed_ = true;
    ++serial_;
    deadline_.cancel();
    stream_->Close();
    if (feed_) feed_->OnWake(nullptr);
    feed_.reset();
    if (auto port = port_.lock()) port->Count(this, -static_cast<std::ptrdiff_t>(std::exchange(bytes_, 0)));
  }

 private:
  void Enter(Stage stage) {
    stage_ = stage;
    since_ = MonotonicClock::now();
  }

  void Next() {
    if (closed_) return;
    parser_.emplace();
    parser_->header_limit(kHeaderLimit);
    parser_->body_limit(boost::none);  // set when the path is known
    parser_->eager(false);             // parse the header only
    header_ = true;
    received_ = 0;
    ++serial_;
    if (stage_ == Stage::kAnswering) Enter(Stage::kIdle);
    if (!pending_.empty()) return FirstByte();
    Hold(0);
    if (auto port = port_.lock()) port->AcceptIfThereIsRoom();
    Until(MonotonicClock::now() + (stage_ == Stage::kNew ? request_limit_ : idle_limit_));
    Read();
  }

  void Until(TimePoint moment) {
    deadline_.expires_at(moment);
    deadline_.async_wait([self = shared_from_this()](error_code error) {
      // The handler of a deadline that passed may be under way when a later one is set.
      if (!error && MonotonicClock::now() >= self->deadline_.expiry()) self->End();
    });
  }

  void End() {
    Close();
    if (auto port = port_.lock()) port->Forget(this);
  }

  void FirstByte() {
    if (stage_ == Stage::kIdle) Enter(Stage::kReceiving);
    first_byte_ = MonotonicClock::now();
    Received(pending_.size());
  }

  void Read() {
    stream_->Read(asio::buffer(buffer_), [self = shared_from_this()](error_code error, size_t size) {
      if (self->closed_) return;
      if (error) return self->End();
      self->pending_.append(self->buffer_.data(), size);
      self->received_ == 0 ? self->FirstByte() : self->Received(size);
    });
  }

  void Received(size_t size) {
    received_ += size;
    Until(DueBy(first_byte_, received_, first_byte_ + request_limit_));
    Parse();
  }

  // Counts the bytes that this connection takes. False: it has ended, or is being refused.
  bool Hold(size_t bytes) {
    auto port = port_.lock();
    if (!port) return false;
    const auto more = static_cast<std::ptrdiff_t>(bytes) - static_cast<std::ptrdiff_t>(std::exchange(bytes_, bytes));
    return port->Count(this, more);
  }

  void Parse() {
    if (!parser_->got_some()) {  // RFC 9112, 2.2: skip empty lines before a request
      pending_.erase(0, std::min(pending_.find_first_not_of("\r\n"), pending_.size()));
      if (pending_.empty()) return Read();
    }
    // The parser reads the fields of a header at once, and joins folded lines.
    if (header_ && HasFoldedLine(std::string_view(pending_).substr(0, pending_.find("\r\n\r\n")))) {
      return Refuse(400, "this is not an HTTP/1 request: a line of its header begins with a blank");
    }
    error_code error;
    const size_t used = parser_->put(asio::buffer(pending_), error);
    pending_.erase(0, used);
    if (error == beast::error::need_more) error = {};
    if (error) return Refuse(error);
    if (header_ && parser_->is_header_done()) {
      header_ = false;
      if (!TakeHeader()) return;
      if (!parser_->is_done()) return BodyFollows();
    }
    if (parser_->is_done()) return Handle();
    // The unused rest is an incomplete line, which the parser needs again as a whole.
    if (pending_.size() > kHeaderLimit) return Refuse(header_ ? beast::error::header_limit : beast::error::bad_chunk);
    const std::string& body = parser_->get().body();
    // A body of known length has its capacity at once, but the kernel provides only the memory that is written.
    if (!Hold(pending_.size() + (parser_->chunked() ? body.capacity() : body.size()))) return Refuse(503, kTooMuch);
    Read();
  }

  // False: the request is refused. Fields after the body (trailers) are no headers.
  bool TakeHeader() {
    const auto& message = parser_->get();
    headers_.clear();
    for (const auto& field : message) headers_.emplace_back(Lower(View(field.name_string())), field.value());
    const auto bad = JudgeFraming(static_cast<int>(message.version() % 10), headers_);
    if (bad) Refuse(bad->status, fmt::format("this is not an HTTP/1 request: {}", bad->why));
    return !bad;
  }

  void BodyFollows() {
    const size_t longest = Longest();
    const auto length = parser_->content_length();
    if (length && *length > longest) return Refuse(beast::error::body_limit);
    parser_->body_limit(longest);
    parser_->eager(true);
    if (!beast::token_list(parser_->get()[beast::field::expect]).exists("100-continue")) {
      return pending_.empty() ? Read() : Parse();
    }
    stream_->Write("HTTP/1.1 100 Continue\r\n\r\n", [self = shared_from_this()](error_code error) {
      if (self->closed_) return;
      if (error) return self->End();
      self->pending_.empty() ? self->Read() : self->Parse();
    });
  }

  size_t Longest() const {
    const auto port = port_.lock();
    if (!port) return 0;
    const std::string_view target = View(parser_->get().target());
    const Route* route = port->Find(target.substr(0, target.find('?')));
    return route == nullptr ? kUnknownBody : route->longest_body;
  }

  void Refuse(error_code error) {
    if (error == beast::error::header_limit) return Refuse(431, "the headers are too long");
    if (error == beast::error::body_limit)
      return Refuse(413, fmt::format("the body is longer than {} bytes", Longest()));
    Refuse(400, fmt::format("this is not an HTTP/1 request: {}", error.message()));
  }

  void Refuse(int status, const std::string& why) {
    if (closed_) return;
    keep_alive_ = false;
    head_ = false;
    parser_.emplace();  // frees the body
    pending_ = {};
    Hold(0);
    Send(Text(status, why + "\n"));
  }

  void Handle() {
    auto port = port_.lock();
    if (!port) return;
    auto& message = parser_->get();
    keep_alive_ = message.keep_alive();
    head_ = message.method() == beast::verb::head;
    Enter(Stage::kAnswering);
    Request request;
    request.method = message.method_string();
    const std::string_view target = View(message.target());
    const size_t question = std::min(target.find('?'), target.size());
    request.path = target.substr(0, question);
    if (question < target.size()) request.query = target.substr(question + 1);
    const Route* route = port->Find(request.path);
    Until(first_byte_ + (route == nullptr ? request_limit_ : route->answer.value_or(request_limit_)));
    if (route == nullptr) return Send(port->NotFound());
    allow_ = route->post ? "POST" : "GET, HEAD";
    if (route->post ? message.method() != beast::verb::post : !head_ && message.method() != beast::verb::get) {
      return Send(Text(405, fmt::format("only {} is answered here\n", allow_)));
    }
    request.headers = std::move(headers_);
    request.body = std::move(message.body());
    if (!Hold(pending_.size() + request.body.size())) return Refuse(503, kTooMuch);
    route->handler(request, [weak = weak_from_this(), serial = serial_](Response response) {
      auto self = weak.lock();
      if (self && self->serial_ == serial) self->Send(std::move(response));
    });
  }

  void Send(Response response) {
    ++serial_;  // a second answer to the same request does nothing
    if (response.feed) keep_alive_ = false;
    const std::string length =
        response.feed ? "" : fmt::format("Content-Length: {}\r\n", response.body.size());  // else up to the end
    std::string more;
    for (const auto& [name, value] : response.headers) more += fmt::format("{}: {}\r\n", name, value);
    answer_ = fmt::format(
        "HTTP/1.1 {} {}\r\nServer: muster\r\nContent-Type: {}\r\n{}Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n{}{}Connection: {}\r\n\r\n",
        response.status, ReasonPhrase(response.status), response.content_type, length, more,
        response.status == 405 ? fmt::format("Allow: {}\r\n", allow_) : "", keep_alive_ ? "keep-alive" : "close");
    if (!head_) answer_ += response.body;
    Hold(pending_.size() + answer_.size());
    stream_->Write(answer_, [self = shared_from_this(), feed = std::move(response.feed)](error_code error) {
      if (self->closed_) return;
      if (error) return self->End();
      self->answer_ = {};
      if (feed && !self->head_) return self->BeginFeed(feed);
      self->keep_alive_ ? self->Next() : self->Linger();
    });
  }

  void BeginFeed(std::shared_ptr<Feed> feed) {
    feed_ = std::move(feed);
    feed_->OnWake([weak = weak_from_this()] {
      if (auto self = weak.lock(); self && self->feed_waits_) self->GoOn();
    });
    pending_ = {};
    Hold(0);
    Discard();  // the client has nothing more to say: it only may go
    GoOn();
  }
  void GoOn() {
    if (closed_) return;
    std::optional<std::string> piece = feed_->Next();
    feed_waits_ = piece && piece->empty();
    Until(feed_waits_ ? TimePoint::max() : MonotonicClock::now() + (piece ? request_limit_ : kLinger));
    if (feed_waits_) return;
    if (!piece) {
      return stream_->Finish([self = shared_from_this()](error_code error) {
        if (!self->closed_ && error) self->End();
      });
    }
    answer_ = *std::move(piece);
    Hold(answer_.size());
    stream_->Write(answer_, [self = shared_from_this()](error_code error) {
      if (self->closed_) return;
      error ? self->End() : self->GoOn();
    });
  }

  // Reads and drops input before the close: closing with unread input sends a reset, which can overtake the answer.
  void Linger() {
    Hold(0);
    Enter(Stage::kIdle);
    Until(since_ + kLinger);
    stream_->Finish([self = shared_from_this()](error_code error) {
      if (self->closed_) return;
      error ? self->End() : self->Discard();
    });
  }
  void Discard() {
    stream_->Read(asio::buffer(buffer_), [self = shared_from_this()](error_code error, size_t) {
      if (self->closed_) return;
      error ? self->End() : self->Discard();
    });
  }

  std::weak_ptr<Impl> port_;
  const Duration request_limit_;
  const Duration idle_limit_;
  const std::unique_ptr<ServerStream> stream_;
  const std::string address_;
  asio::steady_timer deadline_;
  Stage stage_ = Stage::kNew;
  TimePoint since_, first_byte_;
  size_t bytes_ = 0;     // counted in the port's memory
  size_t received_ = 0;  // bytes of this request
  std::array<char, kReadSize> buffer_;
  std::string pending_;  // read and not parsed yet
  std::optional<beast::request_parser<beast::string_body>> parser_;
  Headers headers_;
  std::string answer_;
  std::string_view allow_;
  uint64_t serial_ = 0;  // grows with every request and answer, so that a late answer is recognised
  bool header_ = true;   // the header is not complete yet
  bool closed_ = false;
  bool keep_alive_ = false;
  bool head_ = false;
  std::shared_ptr<Feed> feed_;
  bool feed_waits_ = false;  // it has nothing to send now
};

error_code Server::Impl::Bind(const tcp::endpoint& endpoint, bool dual_stack) {
  error_code error, ignored;
  acceptor_.close(ignored);
  acceptor_.open(endpoint.protocol(), error);
  if (error) return error;
  acceptor_.set_option(tcp::acceptor::reuse_address(true), ignored);
  if (dual_stack) acceptor_.set_option(asio::ip::v6_only(false), ignored);
  acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
  return error;
}

Status Server::Impl::Start(const std::string& host, uint16_t port) {
  error_code error;
  asio::ip::address address = asio::ip::address_v6::any();
  if (host == "localhost") {
    address = asio::ip::address_v4::loopback();
  } else if (!host.empty()) {
    address = asio::ip::make_address(host, error);
  }
  if (error) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a numeric address; give one of this machine, or the port alone", host));
  }
  error = Bind({address, port}, host.empty());
  const bool lacks_ipv6 = error && host.empty() && error != asio::error::address_in_use;
  if (lacks_ipv6) error = Bind({asio::ip::address_v4::any(), port}, false);
  if (error) return ListenStatus(error.value(), host, port);
  port_ = acceptor_.local_endpoint(error).port();
  acceptor_.non_blocking(true, error);
  Accept();
  return absl::OkStatus();
}

void Server::Impl::Accept() {
  acceptor_.async_wait(tcp::acceptor::wait_read, [weak = weak_from_this()](error_code closed) {
    auto self = weak.lock();
    if (!self || closed) return;
    self->full_ = self->sessions_.size() >= self->options_.connections && !self->Yielding(YieldsConnection);
    if (self->full_) return;
    error_code error;
    tcp::socket socket = self->acceptor_.accept(error);
    if (error == asio::error::no_descriptors || error == boost::system::errc::too_many_files_open_in_system ||
        error == asio::error::no_buffer_space || error == asio::error::no_memory) {
      self->accept_again_.expires_after(kRetryAccept);
      self->accept_again_.async_wait([weak](error_code cancelled) {
        auto again = weak.lock();
        if (again && !cancelled) again->Accept();
      });
      return;
    }
    if (!error) self->Admit(std::move(socket));  // else the connection failed before it was accepted
    self->Accept();
  });
}

void Server::Impl::Admit(tcp::socket socket) {
  if (sessions_.size() >= options_.connections) {
    if (const auto session = Yielding(YieldsConnection)) {
      session->Close();
      sessions_.remove(session);
    }
  }
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  std::string address = socket.remote_endpoint(ignored).address().to_string();
  auto stream = options_.tls ? options_.tls->Make(std::move(socket)) : MakePlainStream(std::move(socket));
  sessions_.push_back(std::make_shared<Session>(shared_from_this(), std::move(stream), std::move(address)));
  sessions_.back()->Begin();
}

std::shared_ptr<Server::Impl::Session> Server::Impl::Yielding(
    std::optional<size_t> (*rule)(std::span<const Guest>)) const {
  std::vector<Guest> guests;
  guests.reserve(sessions_.size());
  for (const auto& session : sessions_) guests.push_back(session->guest());
  const auto index = rule(guests);
  return index ? *std::next(sessions_.begin(), static_cast<std::ptrdiff_t>(*index)) : nullptr;
}

void Server::Impl::Forget(const Session* session) {
  sessions_.remove_if([&](const auto& known) { return known.get() == session; });
  AcceptIfThereIsRoom();
}

bool Server::Impl::Count(const Session* session, std::ptrdiff_t more) {
  memory_ += static_cast<size_t>(more);
  while (more > 0 && memory_ > options_.memory) {
    const auto yielding = Yielding(YieldsMemory);
    if (yielding == nullptr || yielding.get() == session) return false;
    yielding->Close();
    sessions_.remove(yielding);
  }
  return true;
}

const Server::Route* Server::Impl::Find(std::string_view path) const {
  if (const auto exact = routes_.find(std::string(path)); exact != routes_.end()) return &exact->second;
  const Route* longest = nullptr;  // routes are sorted, so the last match is the longest
  for (const auto& [prefix, route] : routes_) {
    if (prefix.size() > 1 && prefix.ends_with('/') && path.starts_with(prefix)) longest = &route;
  }
  return longest;
}

Server::Response Server::Impl::NotFound() const {
  std::string body = "there is nothing here; try\n";
  for (const auto& [path, route] : routes_) body += path + "\n";
  return Text(404, std::move(body));
}

void Server::Impl::Close() {
  error_code ignored;
  acceptor_.close(ignored);
  accept_again_.cancel();
  for (const auto& session : sessions_) session->Close();
  sessions_.clear();
}

StatusOr<std::unique_ptr<Server>> Server::Listen(asio::io_context& loop, const std::string& host, uint16_t port,
                                                 Routes routes, Options options) {
  auto impl = std::make_shared<Impl>(loop, std::move(routes), std::move(options));
  MUSTER_RETURN_IF_ERROR(impl->Start(host, port));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { impl_->Close(); }
uint16_t Server::port() const { return impl_->port(); }
size_t Server::connections() const { return impl_->connections(); }

}  // namespace muster::http
