// SPDX-License-Identifier: Apache-2.0
#include "agent/viewers.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster::agent {
namespace {

// How long the news are asked for after the last page or stream: a page asks for its events soon after it is loaded.
constexpr Duration kNobody = std::chrono::seconds(15);
constexpr Duration kFresh = std::chrono::seconds(3);
constexpr int kPatience = 1;  // reports without telemetry that a page waits for one with it

http::Server::Response PageOf(const LiveContent& content) {
  return {.content_type = "text/html; charset=utf-8",
          .body = LivePage(content),
          .headers = {{"Content-Security-Policy", "frame-ancestors 'none'"}}};  // the page's own policy cannot say that
}

}  // namespace

class Viewers::Stream final : public http::Feed {
 public:
  Stream(Viewers& viewers, const std::string& query) : viewers_(&viewers), request_(ParseLiveRequest(query)) {}
  ~Stream() override {
    if (viewers_ != nullptr) viewers_->Left(this);
  }
  void Orphan() { viewers_ = nullptr; }

  std::optional<std::string> Next() override {
    if (viewers_ == nullptr || over_) return std::nullopt;
    std::string text;
    if (trouble_ != viewers_->trouble_) {
      trouble_ = viewers_->trouble_;
      text += MovedEvent(trouble_);
    }
    if (viewers_->content_ && viewers_->content_ != sent_) {
      text += LiveEvents(sent_.get(), *viewers_->content_, request_);
      sent_ = viewers_->content_;
    }
    if (!viewers_->ended_.empty()) {
      text += EndedEvent(viewers_->ended_, viewers_->content_.get());
      over_ = true;
    }
    return text;
  }

 private:
  Viewers* viewers_;
  const LiveRequest request_;
  std::shared_ptr<const LiveContent> sent_;
  std::string trouble_;
  bool over_ = false;
};

Viewers::Viewers(boost::asio::io_context& loop, std::string run_id, LiveOptions options, InnerStatus& inner,
                 Sources sources)
    : options_(std::move(options)),
      sources_(std::move(sources)),
      source_(loop, std::move(run_id), sources_.attended, inner,
              {.told =
                   [this](rendezvous::StatusReport report) {
                     trouble_.clear();
                     Show({.report = std::move(report),
                           .source = "coordinator",
                           .job = sources_.job,
                           .version = sources_.version});
                   },
               .passed_on =
                   [this](LiveView view) {
                     trouble_.clear();
                     if (view.job.empty()) view.job = sources_.job;
                     Show(std::move(view));
                   },
               .trouble = [this](const std::string& why) { Trouble(why); }}),
      nobody_(loop) {}

Viewers::~Viewers() {
  for (Stream* stream : streams_) stream->Orphan();
  source_.End();
}

void Viewers::Look() {
  source_.Begin();
  nobody_.expires_after(kNobody);
  nobody_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    if (!streams_.empty()) return Look();
    source_.End();
    reports_ = 0;
  });
}

void Viewers::Page(const http::Server::Answer& answer) {
  Look();
  if (content_ && MonotonicClock::now() - made_ < kFresh) return answer(PageOf(*content_));
  waiting_.push_back(answer);
}

void Viewers::Events(const std::string& query, const http::Server::Answer& answer) {
  if (streams_.size() >= kMost) {
    return answer({503, "text/plain; charset=utf-8", fmt::format("{} pages are open already; try again\n", kMost)});
  }
  auto stream = std::make_shared<Stream>(*this, query);
  streams_.push_back(stream.get());
  Look();
  answer({.status = 200, .content_type = "text/event-stream", .feed = std::move(stream)});
}

bool Viewers::End(const std::string& sentence) {
  if (ended_.empty()) ended_ = sentence;
  for (Stream* stream : std::list(streams_)) stream->Wake();
  return !streams_.empty();
}

void Viewers::Show(LiveView view) {
  const bool has_ended = view.report.phase == "finished";
  const LiveFacts facts = FactsOf(std::move(view));
  if (has_ended) ended_ = facts.sentence;
  content_ = std::make_shared<const LiveContent>(MakeLiveContent(facts, options_));
  made_ = MonotonicClock::now();
  // The first report comes before the nodes have told anything.
  const auto& nodes = facts.view.report.nodes;
  const bool is_whole = std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return !!node.telemetry; });
  if (is_whole || ++reports_ > kPatience) {
    for (const http::Server::Answer& answer : std::exchange(waiting_, {})) answer(PageOf(*content_));
  }
  for (Stream* stream : std::list(streams_)) stream->Wake();
}

void Viewers::Trouble(const std::string& why) {
  trouble_ = why;
  if (content_ && waiting_.empty()) {
    for (Stream* stream : std::list(streams_)) stream->Wake();
    return;
  }
  Show({.report = sources_.own(),
        .source = "node",
        .source_reason = why,
        .job = sources_.job,
        .version = sources_.version});
}

void Viewers::Left(Stream* stream) { streams_.remove(stream); }

}  // namespace muster::agent
