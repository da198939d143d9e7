// SPDX-License-Identifier: Apache-2.0
#include "agent/http_fetch.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>

#include "base/host_names.h"
#include "base/text.h"
#include "net/connect.h"

namespace muster::agent {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr absl::string_view kRefused = "refused";  // a payload
constexpr uint32_t kHeaderLimit = 16 << 10;

std::string RequestText(const FetchRequest& request) {
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", request.method, request.target,
                                 JoinHostPort(request.host, request.port));
  for (const auto& [name, value] : request.headers) text += fmt::format("{}: {}\r\n", name, value);
  if (request.method != "GET") text += "Content-Length: 0\r\n";
  return text + "\r\n";
}

}  // namespace

class HttpFetch::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, const FetchRequest& request, Done done)
      : where_(JoinHostPort(request.host, request.port)),
        request_(RequestText(request)),
        longest_body_(request.longest_body),
        done_(std::move(done)),
        socket_(loop),
        deadline_(loop) {
    ExpectResponse();
  }

  void Start(asio::io_context& loop, net::Resolver& resolver, Duration limit) {
    deadline_.expires_after(limit);
    deadline_.async_wait([weak = weak_from_this(), limit](error_code error) {
      auto self = weak.lock();
      if (!self || error) return;
      self->End(absl::DeadlineExceededError(
          fmt::format("{} did not answer within {} s", self->where_, std::chrono::duration<double>(limit).count())));
    });
    net::Connecting::Events events;
    events.connected = [this](const net::Connecting::Connected& open) {
      error_code error;
      socket_.assign(open.v6 ? tcp::v6() : tcp::v4(), open.fd, error);  // a fresh descriptor: cannot fail
      Ask();
    };
    events.failed = [this](const net::Connecting::Failed& what) {
      auto self = shared_from_this();
      Status status = absl::UnavailableError(what.detail);
      if (what.loss == net::Loss::kRefused) status.SetPayload(kRefused, absl::Cord());
      End(std::move(status));
    };
    connecting_ = net::Connecting::Start(loop, resolver, where_, limit, std::move(events));
  }

  void Drop() {
    done_ = nullptr;
    connecting_.reset();
    deadline_.cancel();
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  void ExpectResponse() {
    parser_.emplace();
    parser_->header_limit(kHeaderLimit);
    parser_->body_limit(longest_body_);
    parser_->eager(true);
  }

  void Ask() {
    asio::async_write(socket_, asio::buffer(request_), [self = shared_from_this()](error_code error, size_t) {
      if (error) return self->End(absl::UnavailableError(fmt::format("{}: {}", self->where_, error.message())));
      self->Read();
    });
  }

  void Read() {
    socket_.async_read_some(asio::buffer(buffer_), [self = shared_from_this()](error_code error, size_t size) {
      if (!self->done_) return;
      if (error && error != asio::error::eof) {
        return self->End(absl::UnavailableError(fmt::format("{}: {}", self->where_, error.message())));
      }
      self->pending_.append(self->buffer_.data(), size);
      self->Parse(error == asio::error::eof);
    });
  }

  void Parse(bool ended) {
    error_code error;
    if (!pending_.empty()) pending_.erase(0, parser_->put(asio::buffer(pending_), error));
    while (!error && IsInterim()) {
      ExpectResponse();
      if (!pending_.empty()) pending_.erase(0, parser_->put(asio::buffer(pending_), error));
    }
    if (error == http::error::need_more) error = {};
    if (!error && ended && !parser_->is_done()) {
      if (!parser_->got_some()) return End(absl::DataLossError(fmt::format("{} closed without an answer", where_)));
      parser_->put_eof(error);
    }
    if (error) {
      return End(
          absl::DataLossError(fmt::format("{} gave an answer that cannot be read: {}", where_, error.message())));
    }
    if (!parser_->is_done()) return Read();
    FetchAnswer answer;
    answer.status = static_cast<int>(parser_->get().result_int());
    answer.body = std::move(parser_->get().body());
    auto etag = parser_->get()[http::field::etag];
    answer.etag.assign(etag.data(), etag.size());
    End(std::move(answer));
  }

  // True for a whole 1xx response: the answer comes after it. 101 is the answer, since HTTP ends with it.
  bool IsInterim() const {
    if (!parser_->is_done()) return false;
    const unsigned status = parser_->get().result_int();
    return status / 100 == 1 && status != 101;
  }

  void End(StatusOr<FetchAnswer> answer) {
    Done done = std::exchange(done_, nullptr);
    deadline_.cancel();
    connecting_.reset();
    error_code ignored;
    socket_.close(ignored);
    if (done) done(std::move(answer));
  }

  const std::string where_;
  const std::string request_;
  const size_t longest_body_;
  Done done_;
  tcp::socket socket_;
  asio::steady_timer deadline_;
  std::unique_ptr<net::Connecting> connecting_;
  std::array<char, 4096> buffer_;
  std::string pending_;                                             // read and not parsed yet
  std::optional<http::response_parser<http::string_body>> parser_;  // of the response that is being read
};

bool IsRefused(const Status& error) { return error.GetPayload(kRefused).has_value(); }

std::unique_ptr<HttpFetch> HttpFetch::Start(asio::io_context& loop, net::Resolver& resolver,
                                            const FetchRequest& request, Duration limit, Done done) {
  auto impl = std::make_shared<Impl>(loop, request, std::move(done));
  impl->Start(loop, resolver, limit);
  return std::unique_ptr<HttpFetch>(new HttpFetch(std::move(impl)));
}

HttpFetch::HttpFetch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpFetch::~HttpFetch() { impl_->Drop(); }

}  // namespace muster::agent
