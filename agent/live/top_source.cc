// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_source.h"

#include <boost/asio/steady_timer.hpp>
#include <optional>

#include "agent/http_fetch.h"
#include "agent/live/top_end.h"
#include "agent/probe/status_inquiry.h"
#include "base/text.h"

namespace muster::agent {

namespace asio = boost::asio;
using rendezvous::StatusReport;

namespace {

constexpr Duration kPause = std::chrono::seconds(1);        // between two questions
constexpr Duration kAnswerLimit = std::chrono::seconds(8);  // an agent asks its coordinator first, which has 3 s
constexpr size_t kLongestAnswer = 16 << 20;

double InSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

class CoordinatorSource : public TopSource {
 public:
  CoordinatorSource(asio::io_context& loop, const std::string& address, const std::string& run_id,
                    const net::Credentials& credentials, Duration limit, TopEvents events)
      : events_(std::move(events)), inquiry_(loop, run_id, true) {
    auto told = [this](const StatusReport& report) { events_.view({.report = report, .source = "coordinator"}); };
    auto say = [this](const std::string& text) { events_.say(text); };
    auto over = [this](const Status& status) { events_.over(status); };
    inquiry_.Follow(address, nullptr, credentials, limit, {told, say, over});
  }

 private:
  const TopEvents events_;
  StatusInquiry inquiry_;
};

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    escaped += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return escaped;
}

class AgentSource : public TopSource {
 public:
  AgentSource(asio::io_context& loop, std::unique_ptr<AgentPlaces> places, const std::string& run_id,
              const std::string& token, Duration limit, TopEvents events)
      : loop_(loop),
        resolver_(loop),
        pause_(loop),
        target_("/status?ranks=1" + (run_id.empty() ? "" : "&run_id=" + Escaped(run_id))),
        token_(token),
        limit_(limit),
        events_(std::move(events)),
        places_(std::move(places)),
        heard_(MonotonicClock::now()) {
    After(Duration{}, &AgentSource::Look);
  }

 private:
  using Step = void (AgentSource::*)();

  void After(Duration pause, Step step) {
    pause_.expires_after(pause);
    pause_.async_wait([this, step](boost::system::error_code error) {
      if (!error) (this->*step)();
    });
  }

  void Look() {
    places_->Find([this](const StatusOr<AgentPlace>& place) {
      if (!place.ok()) return Miss(place.status());
      if (!place->ended.empty()) {
        events_.say(place->ended);
        return events_.over(absl::OkStatus());
      }
      place_ = *place;
      Ask();
    });
  }

  void Ask() {
    FetchRequest request{.host = place_.host, .port = place_.port, .target = target_, .longest_body = kLongestAnswer};
    if (!token_.empty()) request.headers.emplace_back("Authorization", "Bearer " + token_);
    fetch_ = HttpFetch::Start(loop_, resolver_, request, kAnswerLimit,
                              [this](const StatusOr<FetchAnswer>& answer) { Hear(answer); });
  }

  void Hear(const StatusOr<FetchAnswer>& answer) {
    if (!answer.ok()) return Miss(answer.status());
    if (answer->status == 401) {
      return events_.over(absl::UnauthenticatedError(
          token_.empty() ? "the agent wants a token; give --http-token-file the file that the agent has"
                         : "the agent has another token than --http-token-file"));
    }
    if (answer->status != 200) {
      const std::string_view body = answer->body;
      return Miss(absl::UnavailableError(
          fmt::format("/status was answered with {}: {}", answer->status, Strip(body.substr(0, 200)))));
    }
    StatusOr<LiveView> view = ParseLiveView(answer->body);
    if (!view.ok()) return Miss(Annotate(view.status(), "the answer of /status cannot be read"));
    Take(WithAllNodes(*std::move(view), last_ ? *last_ : rendezvous::StatusReport{}));
  }

  void Take(LiveView view) {
    heard_ = MonotonicClock::now();
    last_ = view.report;
    const bool finished = view.report.phase == "finished";
    After(kPause, &AgentSource::Ask);
    events_.view(std::move(view));
    if (finished) events_.over(absl::OkStatus());
  }

  void Miss(const Status& error) {
    const std::string why(Message(error));
    const ToldEnd told = last_ ? ToldEndOf(*last_) : ToldEnd{};
    const TopSilence silence{.was_heard = last_.has_value(),
                             .refuses = IsRefused(error),
                             .is_only = place_.is_only,
                             .lasts = MonotonicClock::now() - heard_};
    switch (AfterSilence(silence, told, limit_)) {
      case TopNext::kAskAgain:
        After(kPause, &AgentSource::Look);
        return events_.say(why);
      case TopNext::kEnded:
        events_.say(fmt::format("the run has ended: {}; the agent is gone ({})", told.text, why));
        return events_.over(absl::OkStatus());
      case TopNext::kAgentEnded:
        return events_.over(absl::AbortedError(
            fmt::format("the agent has ended, and has not told how the run ended, or whether: {}", why)));
      case TopNext::kLost:
        return events_.over(absl::AbortedError(NoAnswer(kSilenceLimit, why)));
      case TopNext::kNeverHeard:
        return events_.over(absl::DeadlineExceededError(NoAnswer(limit_, why)));
    }
  }

  static std::string NoAnswer(Duration limit, const std::string& why) {
    return fmt::format("no answer for {} s: {}", InSeconds(limit), why);
  }

  asio::io_context& loop_;
  net::Resolver resolver_;
  asio::steady_timer pause_;
  const std::string target_;
  const std::string token_;
  const Duration limit_;
  const TopEvents events_;
  std::unique_ptr<AgentPlaces> places_;
  AgentPlace place_;
  std::unique_ptr<HttpFetch> fetch_;
  TimePoint heard_;                               // the last answer, or the beginning
  std::optional<rendezvous::StatusReport> last_;  // of the last answer
};

}  // namespace

std::unique_ptr<TopSource> FollowCoordinator(asio::io_context& loop, const std::string& address,
                                             const std::string& run_id, const net::Credentials& credentials,
                                             Duration limit, TopEvents events) {
  return std::make_unique<CoordinatorSource>(loop, address, run_id, credentials, limit, std::move(events));
}

std::unique_ptr<TopSource> AskAgents(asio::io_context& loop, std::unique_ptr<AgentPlaces> places,
                                     const std::string& run_id, const std::string& token, Duration limit,
                                     TopEvents events) {
  return std::make_unique<AgentSource>(loop, std::move(places), run_id, token, limit, std::move(events));
}

}  // namespace muster::agent
