// SPDX-License-Identifier: Apache-2.0
#include "agent/preempt_url.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "agent/http_fetch.h"
#include "agent/watch/preempt_rules.h"
#include "base/log.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr auto kLimit = std::chrono::seconds(5);          // services of this machine answer in milliseconds
constexpr auto kLongPollLimit = std::chrono::minutes(5);  // a connection that died silently is noticed by then
constexpr size_t kLongestToken = 4096;
// The longest life that a token can have; a token that has expired is answered with 401. Source: docs.aws.amazon.com.
constexpr const char* kTokenPath = "/latest/api/token";
constexpr const char* kTokenLife = "21600";
// This machine's name as in Resources of an event. Source: learn.microsoft.com, instance metadata service.
constexpr const char* kNamePath = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";

class Asking : public std::enable_shared_from_this<Asking> {
 public:
  Asking(boost::asio::io_context& loop, std::string text, HttpUrl url, Duration interval,
         PreemptNotice::Noticed noticed)
      : loop_(loop),
        text_(std::move(text)),
        url_(std::move(url)),
        long_poll_(IsLongPoll(url_.target)),
        interval_(interval),
        noticed_(std::move(noticed)),
        resolver_(loop),
        timer_(loop) {}

  void Close() {
    noticed_ = nullptr;
    fetch_.reset();
    timer_.cancel();
  }

  void Ask() {
    bool waits = long_poll_ && known_;
    Question("GET", waits ? NextTarget(url_.target, etag_) : FirstTarget(url_.target), {},
             waits ? Duration(kLongPollLimit) : Duration(kLimit),
             [waits](Asking& self, const StatusOr<FetchAnswer>& answer) {
               if (waits && absl::IsDeadlineExceeded(answer.status())) return self.Later();  // no change so far
               self.Judge(answer);
             });
  }

 private:
  using Next = std::function<void(Asking&, StatusOr<FetchAnswer>)>;

  void Question(const std::string& method, const std::string& target,
                std::vector<std::pair<std::string, std::string>> headers, Duration limit, Next next) {
    FetchRequest request{method, url_.host, url_.port, target, std::move(headers)};
    request.headers.emplace_back("Metadata-Flavor", "Google");
    request.headers.emplace_back("Metadata", "true");
    if (!token_.empty() && method == "GET") request.headers.emplace_back("X-aws-ec2-metadata-token", token_);
    fetch_ = HttpFetch::Start(loop_, resolver_, request, limit,
                              [self = shared_from_this(), next = std::move(next)](StatusOr<FetchAnswer> answer) {
                                if (self->noticed_) next(*self, std::move(answer));
                              });
  }

  void Judge(const StatusOr<FetchAnswer>& answer) {
    if (!answer.ok()) return Trouble(std::string(Message(answer.status())));
    NoticeVerdict verdict = JudgeNotice(answer->status, answer->body);
    switch (verdict.kind) {
      case NoticeVerdict::Kind::kNothing:
        etag_ = answer->etag;
        known_ = true;
        return Fine();
      case NoticeVerdict::Kind::kNotice:
        return Notice(verdict.what);
      case NoticeVerdict::Kind::kNoticeOf:
        return WhoAmI(verdict);
      case NoticeVerdict::Kind::kToken:
        return GetToken();
      case NoticeVerdict::Kind::kTrouble:
        return Trouble(verdict.what);
    }
  }

  void GetToken() {
    if (std::exchange(token_is_new_, false)) {
      token_.clear();
      return Trouble("answers with HTTP status 401 to the token that it has just given");
    }
    Question("PUT", kTokenPath, {{"X-aws-ec2-metadata-token-ttl-seconds", kTokenLife}}, kLimit,
             [](Asking& self, StatusOr<FetchAnswer> answer) {
               if (!answer.ok()) {
                 return self.Trouble(
                     fmt::format("asks for a token (401), but PUT {} fails: {}; for a container, the "
                                 "metadata options of the instance need a hop limit of 2",
                                 kTokenPath, Message(answer.status())));
               }
               std::string_view token = Strip(answer->body);
               bool printable = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; });
               if (answer->status != 200 || token.empty() || token.size() > kLongestToken || !printable) {
                 return self.Trouble(fmt::format("asks for a token (401), but PUT {} gives none (HTTP status {})",
                                                 kTokenPath, answer->status));
               }
               self.token_ = token;
               self.token_is_new_ = true;
               self.Ask();
             });
  }

  // Events concern several machines: asks for this machine's name and compares.
  void WhoAmI(const NoticeVerdict& verdict) {
    Question("GET", kNamePath, {}, kLimit, [verdict](Asking& self, StatusOr<FetchAnswer> answer) {
      bool known = answer.ok() && answer->status == 200 && !Strip(answer->body).empty();
      std::string name = known ? Lower(Strip(answer->body)) : "";
      bool ours = !known || std::any_of(verdict.machines.begin(), verdict.machines.end(),
                                        [&](const std::string& machine) { return Lower(machine) == name; });
      ours ? self.Notice(verdict.what) : self.Fine();
    });
  }

  void Notice(const std::string& what) {
    fetch_.reset();
    auto noticed = std::exchange(noticed_, nullptr);
    noticed(fmt::format("{}: {}", text_, what));
  }

  void Fine() {
    token_is_new_ = false;
    if (!std::exchange(trouble_, "").empty()) log::Info(fmt::format("--preempt-file={}: answers now", text_));
    Later();
  }

  void Trouble(std::string what) {
    if (what != trouble_) {
      log::Warning(fmt::format("--preempt-file={}: {}; it is asked again every {} s", text_, what,
                               std::chrono::duration<double>(interval_).count()));
    }
    trouble_ = std::move(what);
    Later();
  }

  void Later() {
    timer_.expires_after(interval_);
    timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
      auto self = weak.lock();
      if (self && !error && self->noticed_) self->Ask();
    });
  }

  boost::asio::io_context& loop_;
  const std::string text_;
  const HttpUrl url_;
  const bool long_poll_;
  const Duration interval_;
  PreemptNotice::Noticed noticed_;
  net::Resolver resolver_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<HttpFetch> fetch_;
  std::string token_;
  bool token_is_new_ = false;  // the service has not accepted it yet
  std::string etag_;
  bool known_ = false;   // the service has answered that there is no notice
  std::string trouble_;  // as logged last; empty: none
};

class UrlNotice final : public PreemptNotice {
 public:
  explicit UrlNotice(std::shared_ptr<Asking> asking) : asking_(std::move(asking)) {}
  ~UrlNotice() override { asking_->Close(); }

 private:
  std::shared_ptr<Asking> asking_;
};

}  // namespace

StatusOr<std::unique_ptr<PreemptNotice>> AwaitUrl(boost::asio::io_context& loop, const std::string& url,
                                                  Duration interval, PreemptNotice::Noticed noticed) {
  auto parsed = ParseHttpUrl(url);
  if (!parsed.ok()) return Annotate(parsed.status(), fmt::format("--preempt-file={}", url));
  auto asking = std::make_shared<Asking>(loop, url, *std::move(parsed), interval, std::move(noticed));
  asking->Ask();
  return std::unique_ptr<PreemptNotice>(new UrlNotice(std::move(asking)));
}

}  // namespace muster::agent
