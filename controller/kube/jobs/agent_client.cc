// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/agent_client.h"

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "http/dead_peer.h"
#include "http/endpoint_url.h"

namespace muster::controller {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr uint32_t kLongestHead = 8 << 10;
constexpr size_t kRead = 16 << 10;
// What an answer may always have. Beyond it, one is dropped if all together are too large.
constexpr size_t kSmall = 16 << 10;

}  // namespace

// Handlers hold it weakly: it lives as long as its handle.
class AgentClient::Request : public std::enable_shared_from_this<Request> {
 public:
  Request(AgentClient& client, Duration patience, Answered answered)
      : client_(client),
        patience_(patience),
        answered_(std::move(answered)),
        socket_(client.loop_),
        deadline_(client.loop_) {}
  ~Request() { Hold(0); }

  void Begin(std::string_view url) {
    const size_t query = std::min(url.find('?'), url.size());
    const auto endpoint = http::ParseEndpointUrl(url.substr(0, query));
    if (!endpoint.ok()) return FailSoon(std::string(Message(endpoint.status())));
    std::string_view host = endpoint->host;
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    error_code error;
    const auto address = asio::ip::make_address(host, error);
    if (error || endpoint->tls) return FailSoon("it is not a plain HTTP URL with a numeric address");
    to_send_ = fmt::format("GET {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: muster\r\nConnection: close\r\n\r\n",
                           endpoint->path, url.substr(query), http::HostHeader(*endpoint));
    socket_.open(address.is_v4() ? tcp::v4() : tcp::v6(), error);
    if (!error) socket_.non_blocking(true, error);
    if (error) return FailSoon(error.message());
    http::NoticeDeadPeer(socket_.native_handle(), client_.limits_.dead_peer);
    Within(client_.limits_.connect);
    const auto port = static_cast<uint16_t>(endpoint->port == 0 ? 80 : endpoint->port);
    socket_.async_connect({address, port}, [weak = weak_from_this()](error_code failed) {
      if (const auto self = weak.lock()) self->Connected(failed);
    });
  }

 private:
  // While an answer comes. Not while a request waits.
  struct Coming {
    beast::response_parser<beast::string_body> parser;
    std::string unread;  // the beginning of a line that is not whole yet
    size_t bytes = 0;
  };

  void FailSoon(std::string why) {
    asio::post(client_.loop_, [weak = weak_from_this(), why = std::move(why)] {
      if (const auto self = weak.lock()) self->Fail(why);
    });
  }
  void Within(Duration limit) {
    deadline_.expires_after(limit);
    deadline_.async_wait([weak = weak_from_this()](error_code error) {
      const auto self = weak.lock();
      // The handler of an earlier deadline may be under way when a later one is set.
      if (!error && self && MonotonicClock::now() >= self->deadline_.expiry()) self->Fail("no whole answer in time");
    });
  }

  void Connected(error_code error) {
    // A new connection takes so few bytes at once.
    if (!error && socket_.write_some(asio::buffer(to_send_), error) < to_send_.size() && !error) {
      error = asio::error::no_buffer_space;
    }
    if (error) return Fail(error.message());
    to_send_ = {};
    Within(patience_);
    Wait();
  }
  void Wait() {
    socket_.async_wait(tcp::socket::wait_read, [weak = weak_from_this()](error_code error) {
      if (const auto self = weak.lock()) error ? self->Fail(error.message()) : self->Read();
    });
  }
  void Read() {
    std::array<char, kRead> bytes;
    error_code error;
    const size_t size = socket_.read_some(asio::buffer(bytes), error);
    if (error == asio::error::would_block) return Wait();
    if (!coming_) {
      if (error) return Fail(error.message());
      coming_ = std::make_unique<Coming>();
      coming_->parser.header_limit(kLongestHead);
      coming_->parser.body_limit(client_.limits_.longest);
      coming_->parser.eager(true);
      Within(client_.limits_.answer);
    }
    if (error == asio::error::eof) return Ended();
    if (error) return Fail(error.message());
    coming_->bytes += size;
    Hold(coming_->bytes);
    if (client_.held_ > client_.limits_.memory && coming_->bytes > kSmall) {
      return Fail("the answers of all agents together are too long");
    }
    Parse({bytes.data(), size});
  }
  void Parse(std::string_view bytes) {
    Coming& coming = *coming_;
    coming.unread += bytes;
    error_code error;
    coming.unread.erase(0, coming.parser.put(asio::buffer(coming.unread), error));
    if (error == beast::error::need_more) error = {};
    if (error) return Fail(error.message());
    if (coming.parser.is_done()) return Finish();
    // The parser keeps nothing of an incomplete line.
    if (coming.unread.size() > kLongestHead) return Fail("a line of the answer is too long");
    Wait();
  }
  // The agent has closed the connection, which may be the end of an answer without a length.
  void Ended() {
    error_code error;
    coming_->parser.put_eof(error);
    if (error || !coming_->parser.is_done()) return Fail("the connection ended within the answer");
    Finish();
  }

  void Hold(size_t bytes) {
    client_.held_ += bytes;
    client_.held_ -= std::exchange(held_, bytes);
  }
  void Finish() {
    auto message = coming_->parser.release();
    End(Answer{static_cast<int>(message.result_int()), std::move(message.body())});
  }
  void Fail(const std::string& why) { End(absl::UnavailableError(why)); }
  void End(StatusOr<Answer> answer) {
    error_code ignored;
    socket_.close(ignored);
    deadline_.cancel();
    coming_.reset();
    Hold(0);
    // What is left under way finds it answered.
    if (const auto answered = std::exchange(answered_, nullptr)) answered(std::move(answer));
  }

  AgentClient& client_;
  const Duration patience_;
  Answered answered_;  // null: has been called
  tcp::socket socket_;
  asio::steady_timer deadline_;
  std::string to_send_;
  std::unique_ptr<Coming> coming_;
  size_t held_ = 0;
};

std::shared_ptr<void> AgentClient::Ask(const std::string& url, Duration patience, Answered answered) {
  auto request = std::make_shared<Request>(*this, patience, std::move(answered));
  request->Begin(url);
  return request;
}

}  // namespace muster::controller
