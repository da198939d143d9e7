// SPDX-License-Identifier: Apache-2.0
#include "local/container/probe_ask.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include "base/quoted.h"
#include "base/text.h"
#include "launcher/worker_group.h"

namespace muster::local {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;

constexpr char kUserAgent[] = "kube-probe/1.36";  // servers recognize probes by it
constexpr size_t kMostBody = 10 << 10;            // bytes of an answer that are read
constexpr size_t kMostSaid = 200;

// The common part of all kinds of probes: the time limit, and that `answered` is called once.
class Question : public std::enable_shared_from_this<Question> {
 public:
  Question(const ProbeContext& context, const Probe& probe, std::function<void(ProbeAnswer)> answered)
      : context_(context), probe_(probe), limit_(context.loop), answered_(std::move(answered)) {}
  virtual ~Question() = default;

  void Begin() {
    limit_.expires_after(probe_.limit);
    limit_.async_wait([weak = weak_from_this()](const error_code& error) {
      auto self = weak.lock();
      if (!error && self) self->Failed(fmt::format("no answer in {} s", self->probe_.limit.count()));
    });
    Put();
  }

  void End() {
    answered_ = nullptr;
    limit_.cancel();
    Close();
  }

 protected:
  virtual void Put() = 0;
  virtual void Close() = 0;  // drops the operation that is under way

  void Answer(ProbeAnswer answer) {
    if (!answered_) return;
    const auto answered = std::move(answered_);
    const auto self = shared_from_this();
    End();
    asio::post(context_.loop, [answered, answer = std::move(answer), self] {
      if (!self->dropped_) answered(answer);
    });
  }
  void Succeeded() { Answer({}); }
  void Failed(std::string why) { Answer({ProbeAnswer::Kind::kFailure, std::move(why)}); }
  void Unknown(std::string why) { Answer({ProbeAnswer::Kind::kUnknown, std::move(why)}); }

  // Copies, because a closed operation still calls its handler, when the caller's objects may be gone.
  const ProbeContext context_;
  const Probe probe_;

 private:
  friend class Handle;
  asio::steady_timer limit_;
  std::function<void(ProbeAnswer)> answered_;
  bool dropped_ = false;
};

class Handle {
 public:
  explicit Handle(std::shared_ptr<Question> question) : question_(std::move(question)) { question_->Begin(); }
  ~Handle() {
    question_->dropped_ = true;
    question_->End();
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

 private:
  const std::shared_ptr<Question> question_;
};

class NetworkQuestion : public Question {
 public:
  NetworkQuestion(const ProbeContext& context, const Probe& probe, std::function<void(ProbeAnswer)> answered)
      : Question(context, probe, std::move(answered)), stream_(context.loop) {}

 protected:
  void Put() override {
    error_code error;
    const auto address = asio::ip::make_address(context_.address, error);
    if (error) return Unknown(fmt::format("{} is not an address", Quoted(context_.address)));
    stream_.async_connect(tcp::endpoint(address, static_cast<uint16_t>(probe_.port)),
                          [this, self = shared_from_this()](const error_code& failed) {
                            if (failed) return Failed(Troubled(failed));
                            Connected();
                          });
  }
  virtual void Connected() { Succeeded(); }
  void Close() override { stream_.close(); }

  std::string Troubled(const error_code& error) const {
    return fmt::format("{}:{}: {}", context_.address, probe_.port, error.message());
  }

  beast::tcp_stream stream_;
};

class HttpQuestion : public NetworkQuestion {
 public:
  using NetworkQuestion::NetworkQuestion;

 private:
  void Connected() override {
    request_.method(beast::http::verb::get);
    request_.target(probe_.path);
    request_.set(beast::http::field::host, fmt::format("{}:{}", context_.address, probe_.port));
    request_.set(beast::http::field::user_agent, kUserAgent);
    request_.set(beast::http::field::accept, "*/*");
    request_.set(beast::http::field::connection, "close");
    for (const auto& [name, value] : probe_.headers) request_.erase(name);
    for (const auto& [name, value] : probe_.headers) request_.insert(name, value);
    answer_.body_limit(kMostBody);
    beast::http::async_write(stream_, request_,
                             [this, self = shared_from_this()](const error_code& error, size_t /*bytes*/) {
                               if (error) return Failed(Troubled(error));
                               Read();
                             });
  }

  // Reads the head alone: the status code decides.
  void Read() {
    beast::http::async_read_header(
        stream_, buffer_, answer_, [this, self = shared_from_this()](const error_code& error, size_t /*bytes*/) {
          if (error) return Failed(Troubled(error));
          const unsigned code = answer_.get().result_int();
          if (code >= 200 && code < 400) return Succeeded();
          Failed(fmt::format("GET {} on {}:{} gives {}", probe_.path, context_.address, probe_.port, code));
        });
  }

  beast::http::request<beast::http::empty_body> request_;
  beast::http::response_parser<beast::http::string_body> answer_;
  beast::flat_buffer buffer_{kMostBody};
};

class CommandQuestion : public Question {
 public:
  using Question::Question;

 private:
  void Put() override {
    launcher::WorkerSpec spec{.argv = context_.words(probe_.command), .environment = context_.environment};
    if (spec.argv.empty()) return Unknown("the container does not run");
    for (launcher::StreamSpec* stream : {&spec.output.out, &spec.output.err}) {
      stream->console = false;
      stream->keep_tail = true;
    }
    group_ = std::make_unique<launcher::WorkerGroup>(
        context_.loop, context_.reaper, context_.console,
        launcher::WorkerGroupEvents{.worker_exited = [this](const launcher::ExitRecord& record) { Ended(record); },
                                    .all_gone = [] {}});
    const auto started = group_->Start({spec});
    if (!started.ok()) Unknown(std::string(Message(started)));
  }

  // Does not call WorkerGroup::Stop(): that kills orphans with this environment, and it is the container's own.
  void Close() override {
    // Destroys the group later, since this may be a callback of the group itself.
    asio::post(context_.loop, [group = std::shared_ptr<launcher::WorkerGroup>(std::move(group_))] {});
  }

  void Ended(const launcher::ExitRecord& record) {
    std::string said;
    for (const auto* tail : {&record.stderr_tail, &record.stdout_tail}) {
      if (said.empty() && !tail->empty()) said = Quoted(tail->back(), kMostSaid);
    }
    if (record.signal != 0) return Unknown(said);  // EnterContainer() ends so if it cannot start the command
    if (record.exit_code == 0) return Succeeded();
    Failed(fmt::format("exit code {}{}{}", record.exit_code, said.empty() ? "" : ": ", said));
  }

  std::unique_ptr<launcher::WorkerGroup> group_;
};

std::shared_ptr<Question> Make(const ProbeContext& context, const Probe& probe,
                               std::function<void(ProbeAnswer)> answered) {
  switch (probe.kind) {
    case Probe::Kind::kHttp:
      return std::make_shared<HttpQuestion>(context, probe, std::move(answered));
    case Probe::Kind::kTcp:
      return std::make_shared<NetworkQuestion>(context, probe, std::move(answered));
    case Probe::Kind::kExec:
      break;
  }
  return std::make_shared<CommandQuestion>(context, probe, std::move(answered));
}

}  // namespace

std::shared_ptr<void> AskContainer(const ProbeContext& context, const Probe& probe,
                                   std::function<void(ProbeAnswer)> answered) {
  return std::make_shared<Handle>(Make(context, probe, std::move(answered)));
}

}  // namespace muster::local
