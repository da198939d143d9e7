#include "initializers/fetch.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/text.h"
#include "initializers/endpoint_url.h"

namespace muster::initializers {
namespace {

constexpr size_t kLongestRefusal = 64 << 10;  // bytes of an error's body that are read
constexpr int kMostRedirects = 5;

Refusal Transient(std::string text) { return {Refusal::Kind::kTransient, absl::UnavailableError(std::move(text)), {}}; }
Refusal Fatal(std::string text) { return {Refusal::Kind::kFatal, absl::FailedPreconditionError(std::move(text)), {}}; }

}  // namespace

Fetch::Fetch(Context& context, const Entry& entry, ByteRange range, Taker taker)
    : context_(context), entry_(entry), range_(range), taker_(std::move(taker)), pause_(context.loop) {}

Fetch::~Fetch() {
  if (transfer_ != 0) context_.http.Cancel(transfer_);
}

void Fetch::Begin() { Ask(); }

void Fetch::Resume() {
  if (transfer_ != 0) context_.http.Resume(transfer_);
}

void Fetch::Ask() {
  redirects_ = 0;
  asked_from_ = taken_;
  asked_with_ = retry_;
  Prepare();
}

void Fetch::Prepare() {
  const ByteRange left{range_.offset + taken_, range_.length - taken_};
  preparing_ = context_.provider.Prepare(entry_, left, [this](StatusOr<HttpRequest> request) {
    if (!request.ok()) return Failed({Refusal::Kind::kFatal, request.status(), {}});
    Send(*request);
  });
}

void Fetch::Send(const HttpRequest& request) {
  heard_ = too_long_ = unframed_ = false;
  reception_ = {};
  refusal_body_.clear();
  context_.requested();
  transfer_ = context_.http.Start(request, context_.limits, *this);
}

bool Fetch::Head(const HttpHead& head) {
  heard_ = true;
  head_ = head;
  const ByteRange left{range_.offset + taken_, range_.length - taken_};
  reception_ = context_.provider.Receive(entry_, left, head);
  if (reception_.expected) taker_.expect(*reception_.expected);
  const auto length = head.ContentLength();
  unframed_ = reception_.kind == Reception::Kind::kBytes && head.status == 200 && !length;
  // The short body that most redirects have is read, so that the connection can be kept, and that of an error for its
  // text; what is no error's text may be a terabyte.
  const uint64_t unsaid = reception_.kind == Reception::Kind::kElsewhere ? SIZE_MAX : 0;
  return reception_.kind == Reception::Kind::kBytes || length.value_or(unsaid) <= kLongestRefusal;
}

bool Fetch::Body(std::string_view bytes) {
  if (reception_.kind == Reception::Kind::kElsewhere) return true;
  if (reception_.kind == Reception::Kind::kFailed) {
    if (refusal_body_.size() + bytes.size() > kLongestRefusal) {
      EndRefused();
      return false;
    }
    refusal_body_ += bytes;
    return true;
  }
  if (bytes.size() > range_.length - taken_) {
    too_long_ = true;
    bytes = bytes.substr(0, range_.length - taken_);
  }
  if (bytes.empty()) return true;  // what is too much is not kept, the end says so
  if (!taker_.take(bytes)) return false;
  taken_ += bytes.size();
  Progress(&retry_, bytes.size());
  return true;
}

// Its body has no end in sight. Not at once: it is being delivered.
void Fetch::EndRefused() {
  boost::asio::post(context_.loop, [this, id = transfer_, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired() || transfer_ != id) return;
    context_.http.Cancel(std::exchange(transfer_, 0));
    Failed(context_.provider.Explain(entry_, head_, refusal_body_));
  });
}

void Fetch::End(const HttpEnd& end) {
  transfer_ = 0;
  const bool answered = end.kind == HttpEnd::Kind::kRefused || end.kind == HttpEnd::Kind::kWhole;
  if (reception_.kind == Reception::Kind::kElsewhere && answered) {
    if (++redirects_ > kMostRedirects) {
      const std::string& last = reception_.url.empty() ? head_.url : reception_.url;
      return Failed(
          Fatal(fmt::format("{}: redirected {} times, last to {}", entry_.key, kMostRedirects, WithoutQuery(last))));
    }
    if (reception_.url.empty()) return Prepare();
    HttpRequest elsewhere;
    elsewhere.url = reception_.url;
    elsewhere.headers = {{"Range", fmt::format("bytes={}-{}", range_.offset + taken_, range_.end() - 1)},
                         {"Accept-Encoding", "identity"}};
    return Send(elsewhere);
  }
  if (answered && heard_ && reception_.kind == Reception::Kind::kFailed) {
    return Failed(context_.provider.Explain(entry_, head_, refusal_body_));
  }
  if (taken_ == range_.length && !too_long_) {
    context_.succeeded = MonotonicClock::now();
    return taker_.done();
  }
  Failed(Unhappy(end));
}

Refusal Fetch::Unhappy(const HttpEnd& end) const {
  const bool final = end.kind == HttpEnd::Kind::kUntrusted || end.kind == HttpEnd::Kind::kInvalid;
  if (too_long_ && !final) return Transient(fmt::format("{}: more bytes came than were asked for", entry_.key));
  if (end.kind != HttpEnd::Kind::kWhole) return RefusalOf(end, entry_.key);
  return Transient(fmt::format("{}: the answer ended after {} of {} bytes", entry_.key, taken_ - asked_from_,
                               range_.length - asked_from_));
}

void Fetch::Failed(Refusal refusal) {
  const bool again = refusal.kind == Refusal::Kind::kTransient || refusal.kind == Refusal::Kind::kThrottled;
  if (!again) return taker_.failed(std::move(refusal));
  if (refusal.kind == Refusal::Kind::kThrottled) context_.throttled();
  const bool anew = too_long_ || (taken_ > 0 && (unframed_ || entry_.version.empty() || !entry_.ranges));
  if (anew) retry_ = asked_with_;  // what is thrown away was no progress
  const TimePoint now = MonotonicClock::now();
  Failure failure{true, refusal.asked, std::string(Message(refusal.status))};
  if (context_.succeeded) failure.since_success = now - *context_.succeeded;
  RetryDecision decision = Decide(context_.retry, &retry_, failure, now, context_.jitter());
  if (!decision.pause) {
    refusal.status = absl::UnavailableError(decision.reason);
    return taker_.failed(std::move(refusal));
  }
  context_.say(decision.reason);
  if (anew) {
    taken_ = 0;
    taker_.restart();
  }
  pause_.expires_after(*decision.pause);
  pause_.async_wait([this, alive = std::weak_ptr<bool>(alive_)](boost::system::error_code error) {
    if (!error && !alive.expired()) Ask();
  });
}

}  // namespace muster::initializers
