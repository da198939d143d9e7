// SPDX-License-Identifier: Apache-2.0
#include "local/progress_inquiry.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <memory>

#include "base/text.h"
#include "controller/plan/plan.h"

namespace muster::local {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kMostAgents = 8;     // of a job: each tells of its own workers, and often only the first ones write
constexpr size_t kMostAsked = 256;    // of all jobs: each takes a descriptor
constexpr size_t kLongest = 4 << 20;  // bytes of an answer

// One question. It lives as long as its operation.
class Question : public std::enable_shared_from_this<Question> {
 public:
  Question(asio::io_context& loop, std::function<void(const std::string&)> answered)
      : stream_(loop), answered_(std::move(answered)) {}

  void Begin(const std::string& address) {
    error_code error;
    const auto numeric = asio::ip::make_address(address, error);
    if (error) return;
    request_.method(http::verb::get);
    request_.target("/status");
    request_.set(http::field::host, fmt::format("{}:{}", address, controller::kAgentHttpPort));
    request_.set(http::field::connection, "close");
    answer_.body_limit(kLongest);
    stream_.async_connect(tcp::endpoint(numeric, static_cast<uint16_t>(controller::kAgentHttpPort)),
                          [self = shared_from_this()](const error_code& failed) {
                            if (!failed) self->Send();
                          });
  }

 private:
  void Send() {
    http::async_write(stream_, request_, [self = shared_from_this()](const error_code& failed, size_t /*bytes*/) {
      if (!failed) self->Read();
    });
  }

  void Read() {
    http::async_read(stream_, buffer_, answer_,
                     [self = shared_from_this()](const error_code& failed, size_t /*bytes*/) {
                       if (!failed && self->answer_.get().result() == http::status::ok)
                         self->answered_(self->answer_.get().body());
                     });
  }

  boost::beast::tcp_stream stream_;
  const std::function<void(const std::string&)> answered_;
  http::request<http::empty_body> request_;
  http::response_parser<http::string_body> answer_;
  boost::beast::flat_buffer buffer_;
};

}  // namespace

ProgressByJob AskProgress(const std::vector<FoundJob>& jobs, Duration limit) {
  ProgressByJob told;
  asio::io_context loop(1);
  size_t asked = 0;
  for (const FoundJob& job : jobs) {
    for (const std::string& address : AgentsToAsk(job, kMostAgents)) {
      if (asked++ == kMostAsked) break;
      const auto answered = [&told, name = job.name](const std::string& status) {
        const auto progress = ParseJobProgress(status);
        if (!progress) return;
        const auto known = told.find(name);
        if (IsFurther(*progress, known == told.end() ? std::nullopt : std::optional(known->second))) {
          told[name] = *progress;
        }
      };
      std::make_shared<Question>(loop, answered)->Begin(address);
    }
    if (asked >= kMostAsked) break;
  }
  loop.run_for(limit);
  return told;
}

}  // namespace muster::local
