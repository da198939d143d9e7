// SPDX-License-Identifier: Apache-2.0
#include "initializers/transfer/fetch.h"

#include <utility>

#include "base/text.h"
#include "http/endpoint_url.h"

namespace muster::initializers {
namespace {

constexpr size_t kLongestRefusal = 64 << 10;  // bytes of an error's body that are read

http::Refusal Transient(const std::string& text) {
  return {http::Refusal::Kind::kTransient, absl::UnavailableError(text), {}};
}
http::Refusal Fatal(const std::string& text) {
  return {http::Refusal::Kind::kFatal, absl::FailedPreconditionError(text), {}};
}

}  // namespace

// Passes the missing bytes of the range to the taker's intake. Drops any further bytes; End then reports them.
class Fetch::Portion final : public http::Intake {
 public:
  Portion(std::shared_ptr<http::Intake> to, uint64_t most) : to_(std::move(to)), most_(most) {}
  Taken Take(std::string_view bytes) override {
    too_long_ = too_long_ || bytes.size() > most_ - taken_;
    bytes = bytes.substr(0, most_ - taken_);
    if (bytes.empty()) return Taken::kAll;
    const Taken word = to_->Take(bytes);
    if (word == Taken::kAll) taken_ += bytes.size();
    return word;
  }
  uint64_t taken() const { return taken_; }
  bool too_long() const { return too_long_; }

 private:
  const std::shared_ptr<http::Intake> to_;
  const uint64_t most_;
  uint64_t taken_ = 0;
  bool too_long_ = false;
};

// Collects the body of an error. A body beyond kLongestRefusal is dropped.
class Fetch::Text final : public http::Intake {
 public:
  Taken Take(std::string_view bytes) override {
    if (text_.size() + bytes.size() > kLongestRefusal) return Taken::kEnough;
    text_ += bytes;
    return Taken::kAll;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

Fetch::Fetch(Context& context, http::Transport& http, const Entry& entry, ByteRange range, Taker taker)
    : context_(context), http_(http), entry_(entry), range_(range), taker_(std::move(taker)), pause_(context.loop) {}

Fetch::~Fetch() {
  if (transfer_ != 0) http_.Cancel(transfer_);
}

void Fetch::Begin() { Ask(); }

void Fetch::Resume() {
  if (transfer_ != 0) http_.Resume(transfer_);
}

void Fetch::Ask() {
  redirects_ = 0;
  asked_from_ = taken_;
  asked_with_ = retry_;
  Prepare();
}

void Fetch::Prepare() {
  const ByteRange left{range_.offset + taken_, range_.length - taken_};
  preparing_ = context_.provider.Prepare(entry_, left, [this](StatusOr<http::Request> request) {
    if (!request.ok()) return Failed({http::Refusal::Kind::kFatal, request.status(), {}});
    Send(*request);
  });
}

void Fetch::Send(const http::Request& request) {
  heard_ = too_long_ = unframed_ = false;
  reception_ = {};
  text_.reset();
  context_.requested();
  transfer_ = http_.Start(request, context_.limits, *this);
}

std::shared_ptr<http::Intake> Fetch::Head(const http::ResponseHead& head) {
  heard_ = true;
  head_ = head;
  const ByteRange left{range_.offset + taken_, range_.length - taken_};
  reception_ = context_.provider.Receive(entry_, left, head);
  if (reception_.expected) taker_.expect(*reception_.expected);
  const auto length = head.ContentLength();
  if (reception_.kind == Reception::Kind::kBytes) {
    unframed_ = head.status == 200 && !length;
    return portion_ = std::make_shared<Portion>(taker_.intake(), left.length);
  }
  // The body is read for two reasons: the short body of most redirects, so that the connection can be reused; the body
  // of an error, for its text. A longer body is not read: it may be a terabyte.
  const uint64_t unsaid = reception_.kind == Reception::Kind::kElsewhere ? SIZE_MAX : 0;
  if (length.value_or(unsaid) > kLongestRefusal) return nullptr;
  return text_ = std::make_shared<Text>();
}

void Fetch::End(const http::TransferEnd& end) {
  transfer_ = 0;
  if (const auto portion = std::exchange(portion_, nullptr)) {
    taken_ += portion->taken();
    too_long_ = portion->too_long();
    http::NoteProgress(&retry_, portion->taken());
  }
  const bool answered = end.kind == http::TransferEnd::Kind::kRefused || end.kind == http::TransferEnd::Kind::kWhole;
  if (reception_.kind == Reception::Kind::kElsewhere && answered) {
    if (++redirects_ > kMostRedirects) {
      const std::string& last = reception_.url.empty() ? head_.url : reception_.url;
      return Failed(Fatal(
          fmt::format("{}: redirected {} times, last to {}", entry_.key, kMostRedirects, http::WithoutQuery(last))));
    }
    if (reception_.url.empty()) return Prepare();
    http::Request elsewhere;
    elsewhere.url = reception_.url;
    elsewhere.headers = {{"Range", fmt::format("bytes={}-{}", range_.offset + taken_, range_.end() - 1)},
                         {"Accept-Encoding", "identity"}};
    return Send(elsewhere);
  }
  if (answered && heard_ && reception_.kind == Reception::Kind::kFailed) {
    return Failed(context_.provider.Explain(entry_, head_, text_ ? text_->text() : ""));
  }
  if (taken_ == range_.length && !too_long_) {
    context_.succeeded = MonotonicClock::now();
    return taker_.done();
  }
  Failed(Unhappy(end));
}

http::Refusal Fetch::Unhappy(const http::TransferEnd& end) const {
  const bool final = end.kind == http::TransferEnd::Kind::kUntrusted || end.kind == http::TransferEnd::Kind::kInvalid;
  if (too_long_ && !final) return Transient(fmt::format("{}: more bytes came than were asked for", entry_.key));
  if (end.kind != http::TransferEnd::Kind::kWhole) return http::RefusalOf(end, entry_.key);
  return Transient(fmt::format("{}: the answer ended after {} of {} bytes", entry_.key, taken_ - asked_from_,
                               range_.length - asked_from_));
}

void Fetch::Failed(http::Refusal refusal) {
  const bool again = refusal.kind == http::Refusal::Kind::kTransient || refusal.kind == http::Refusal::Kind::kThrottled;
  if (!again) return taker_.failed(std::move(refusal));
  if (refusal.kind == http::Refusal::Kind::kThrottled) context_.throttled();
  const bool from_start = too_long_ || (taken_ > 0 && (unframed_ || entry_.version.empty() || !entry_.ranges));
  if (from_start) retry_ = asked_with_;  // bytes that are thrown away are no progress
  const TimePoint now = MonotonicClock::now();
  http::RetryFailure failure{true, refusal.asked, std::string(Message(refusal.status))};
  if (context_.succeeded) failure.since_success = now - *context_.succeeded;
  http::RetryDecision decision = http::DecideRetry(context_.retry, &retry_, failure, now, context_.jitter());
  if (!decision.pause) {
    refusal.status = absl::UnavailableError(decision.reason);
    return taker_.failed(std::move(refusal));
  }
  context_.say(decision.reason);
  if (from_start) {
    taken_ = 0;
    taker_.restart();
  }
  pause_.expires_after(*decision.pause);
  pause_.async_wait([this, alive = std::weak_ptr<bool>(alive_)](boost::system::error_code error) {
    if (!error && !alive.expired()) Ask();
  });
}

}  // namespace muster::initializers
