#include "agent/http_port.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <list>
#include <optional>

#include "base/host_names.h"
#include "base/text.h"

namespace muster::agent {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr uint32_t kHeaderLimit = 8 << 10;
constexpr uint64_t kBodyLimit = 16 << 10;
constexpr auto kLinger = std::chrono::seconds(1);  // for what a refused client still sends
constexpr auto kRetryAccept = std::chrono::milliseconds(100);

std::string_view ReasonPhrase(int status) {
  auto phrase = http::obsolete_reason(static_cast<http::status>(status));
  return {phrase.data(), phrase.size()};
}

}  // namespace

class HttpPort::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, std::map<std::string, HttpHandler> handlers, Limits limits)
      : loop_(loop), acceptor_(loop), accept_again_(loop), handlers_(std::move(handlers)), limits_(limits) {}

  Status Start(const std::string& host, uint16_t port);
  void Close();
  uint16_t port() const { return port_; }
  size_t connections() const { return sessions_.size(); }

 private:
  class Session;

  error_code Bind(const tcp::endpoint& endpoint, bool dual_stack);
  void Accept();
  void MakeRoom();
  void Forget(const Session* session);
  HttpResponse NotFound(const std::string& path) const;

  asio::io_context& loop_;
  tcp::acceptor acceptor_;
  asio::steady_timer accept_again_;
  const std::map<std::string, HttpHandler> handlers_;
  const Limits limits_;
  uint16_t port_ = 0;
  std::list<std::shared_ptr<Session>> sessions_;  // the oldest first
};

// One connection.
class HttpPort::Impl::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(const std::shared_ptr<Impl>& port, tcp::socket socket)
      : port_(port), limits_(port->limits_), socket_(std::move(socket)), deadline_(port->loop_) {}

  bool idle() const { return idle_; }

  void Next() {
    parser_.emplace();
    parser_->header_limit(kHeaderLimit);
    parser_->body_limit(kBodyLimit);
    parser_->eager(true);
    ++serial_;
    if (!pending_.empty()) return Begin();
    idle_ = true;
    Limit(limits_.idle);
    Read();
  }

  void Close() {
    idle_ = false;
    ++serial_;
    error_code ignored;
    deadline_.cancel();
    socket_.close(ignored);
  }

 private:
  void Limit(Duration limit) {
    deadline_.expires_after(limit);
    deadline_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->End();
    });
  }

  void End() {
    Close();
    if (auto port = port_.lock()) port->Forget(this);
  }

  // The first byte of a request is here.
  void Begin() {
    idle_ = false;
    Limit(limits_.request);
    Parse();
  }

  void Read() {
    socket_.async_read_some(asio::buffer(buffer_), [self = shared_from_this()](error_code error, size_t size) {
      if (error) return self->End();
      self->pending_.append(self->buffer_.data(), size);
      self->idle_ ? self->Begin() : self->Parse();
    });
  }

  void Parse() {
    if (!parser_->got_some()) {  // RFC 9112, 2.2: an empty line before a request is passed over
      pending_.erase(0, std::min(pending_.find_first_not_of("\r\n"), pending_.size()));
      if (pending_.empty()) return Read();
    }
    error_code error;
    size_t used = parser_->put(asio::buffer(pending_), error);
    pending_.erase(0, used);
    if (error == http::error::need_more) error = {};
    if (error) return Refuse(error);
    // What is not used yet is the incomplete line of a header, which the parser wants to see again as a whole.
    if (!parser_->is_done()) return pending_.size() > kHeaderLimit ? Refuse(http::error::header_limit) : Read();
    Handle();
  }

  void Refuse(error_code error) {
    keep_alive_ = false;
    head_ = false;
    if (error == http::error::header_limit)
      return Send({431, "text/plain; charset=utf-8", "the headers are too long\n"});
    if (error == http::error::body_limit) return Send({413, "text/plain; charset=utf-8", "the body is too long\n"});
    Send({400, "text/plain; charset=utf-8", fmt::format("this is no HTTP/1 request: {}\n", error.message())});
  }

  void Handle() {
    auto port = port_.lock();
    if (!port) return;
    const auto& message = parser_->get();
    keep_alive_ = message.keep_alive();
    head_ = message.method() == http::verb::head;
    if (!head_ && message.method() != http::verb::get) {
      return Send({405, "text/plain; charset=utf-8", "only GET and HEAD are answered here\n"});
    }
    HttpRequest request;
    std::string_view target(message.target().data(), message.target().size());
    size_t question = std::min(target.find('?'), target.size());
    request.path = target.substr(0, question);
    if (question < target.size()) request.query = target.substr(question + 1);
    auto handler = port->handlers_.find(request.path);
    if (handler == port->handlers_.end()) return Send(port->NotFound(request.path));
    handler->second(request, [weak = weak_from_this(), serial = serial_](HttpResponse response) {
      auto self = weak.lock();
      if (self && self->serial_ == serial) self->Send(std::move(response));
    });
  }

  void Send(HttpResponse response) {
    ++serial_;  // the second answer to a request does nothing
    answer_ = fmt::format(
        "HTTP/1.1 {} {}\r\nServer: muster\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n{}Connection: {}\r\n\r\n",
        response.status, ReasonPhrase(response.status), response.content_type, response.body.size(),
        response.status == 405 ? "Allow: GET, HEAD\r\n" : "", keep_alive_ ? "keep-alive" : "close");
    if (!head_) answer_ += response.body;
    asio::async_write(socket_, asio::buffer(answer_), [self = shared_from_this()](error_code error, size_t) {
      if (error) return self->End();
      self->answer_ = {};
      self->keep_alive_ ? self->Next() : self->Linger();
    });
  }

  // A close with unread input would be a reset, which can overtake the answer.
  void Linger() {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    Limit(kLinger);
    Discard();
  }
  void Discard() {
    socket_.async_read_some(asio::buffer(buffer_), [self = shared_from_this()](error_code error, size_t) {
      if (error) return self->End();
      self->Discard();
    });
  }

  std::weak_ptr<Impl> port_;
  const Limits limits_;
  tcp::socket socket_;
  asio::steady_timer deadline_;
  std::array<char, 4096> buffer_;
  std::string pending_;  // read and not parsed yet
  std::optional<http::request_parser<http::string_body>> parser_;
  std::string answer_;
  uint64_t serial_ = 0;  // grows with every request and answer: a late answer is recognised
  bool idle_ = false;
  bool keep_alive_ = false;
  bool head_ = false;
};

error_code HttpPort::Impl::Bind(const tcp::endpoint& endpoint, bool dual_stack) {
  error_code error, ignored;
  acceptor_.close(ignored);
  acceptor_.open(endpoint.protocol(), error);
  if (error) return error;
  acceptor_.set_option(tcp::acceptor::reuse_address(true), ignored);
  if (dual_stack) acceptor_.set_option(asio::ip::v6_only(false), ignored);
  acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(64, error);
  return error;
}

Status HttpPort::Impl::Start(const std::string& host, uint16_t port) {
  error_code error;
  asio::ip::address address = asio::ip::address_v6::any();
  if (host == "localhost") {
    address = asio::ip::address_v4::loopback();
  } else if (!host.empty()) {
    address = asio::ip::make_address(host, error);
  }
  if (error) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is no numeric address; give one of this machine, or the port alone", host));
  }
  error = Bind({address, port}, host.empty());
  if (error && host.empty()) error = Bind({asio::ip::address_v4::any(), port}, false);  // no IPv6 here
  if (error) return ListenStatus(error.value(), host, port);
  port_ = acceptor_.local_endpoint(error).port();
  acceptor_.non_blocking(true, error);
  Accept();
  return absl::OkStatus();
}

void HttpPort::Impl::Accept() {
  acceptor_.async_accept([weak = weak_from_this()](error_code error, tcp::socket socket) {
    auto self = weak.lock();
    if (!self || error == asio::error::operation_aborted) return;
    if (error == asio::error::no_descriptors || error == boost::system::errc::too_many_files_open_in_system ||
        error == asio::error::no_buffer_space || error == asio::error::no_memory) {
      self->accept_again_.expires_after(kRetryAccept);
      self->accept_again_.async_wait([weak](error_code cancelled) {
        auto again = weak.lock();
        if (again && !cancelled) again->Accept();
      });
      return;
    }
    if (!error) {
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      self->MakeRoom();
      self->sessions_.push_back(std::make_shared<Session>(self, std::move(socket)));
      self->sessions_.back()->Next();
    }  // else that one connection went wrong before we saw it
    self->Accept();
  });
}

void HttpPort::Impl::MakeRoom() {
  if (sessions_.size() < limits_.connections) return;
  auto victim = sessions_.begin();
  for (auto session = sessions_.begin(); session != sessions_.end(); ++session) {
    if (!(*session)->idle()) continue;
    victim = session;
    break;
  }
  (*victim)->Close();
  sessions_.erase(victim);
}

void HttpPort::Impl::Forget(const Session* session) {
  sessions_.remove_if([&](const auto& known) { return known.get() == session; });
}

HttpResponse HttpPort::Impl::NotFound(const std::string&) const {
  std::string body = "there is nothing here; try\n";
  for (const auto& [path, handler] : handlers_) body += path + "\n";
  return {404, "text/plain; charset=utf-8", std::move(body)};
}

void HttpPort::Impl::Close() {
  error_code ignored;
  acceptor_.close(ignored);
  accept_again_.cancel();
  for (const auto& session : sessions_) session->Close();
  sessions_.clear();
}

StatusOr<std::unique_ptr<HttpPort>> HttpPort::Listen(asio::io_context& loop, const std::string& host, uint16_t port,
                                                     std::map<std::string, HttpHandler> handlers, Limits limits) {
  auto impl = std::make_shared<Impl>(loop, std::move(handlers), limits);
  MUSTER_RETURN_IF_ERROR(impl->Start(host, port));
  return std::unique_ptr<HttpPort>(new HttpPort(std::move(impl)));
}

HttpPort::HttpPort(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpPort::~HttpPort() { impl_->Close(); }
uint16_t HttpPort::port() const { return impl_->port(); }
size_t HttpPort::connections() const { return impl_->connections(); }

}  // namespace muster::agent
