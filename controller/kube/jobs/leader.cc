// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/leader.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <random>
#include <utility>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/reconcile/back_off.h"

namespace muster::controller {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr Duration kReleaseTime = std::chrono::seconds(3);

}  // namespace

class Leader::Impl : public std::enable_shared_from_this<Leader::Impl> {
 public:
  Impl(asio::io_context& loop, ApiClient& client, std::string ns, std::string name, std::string identity,
       LeaseRules rules, Events events)
      : client_(client),
        ns_(std::move(ns)),
        name_(std::move(name)),
        identity_(std::move(identity)),
        rules_(rules),
        events_(std::move(events)),
        next_(loop),
        limit_(loop),
        end_(loop),
        random_(std::random_device{}()) {}

  void Begin() { Try(); }
  std::optional<TimePoint> deadline() const {
    return leads_ ? std::optional(renewed_ + rules_.renew_deadline) : std::nullopt;
  }
  bool MayAct() const { return leads_ && MonotonicClock::now() < renewed_ + rules_.renew_deadline; }
  void Release(std::function<void()> done);
  void Close() {
    over_ = true;
    leads_ = false;
    under_way_.reset();
    for (asio::steady_timer* timer : {&next_, &limit_, &end_}) timer->cancel();
  }

 private:
  using Step = void (Impl::*)();
  using Heard = void (Impl::*)(StatusOr<Json>);

  void At(asio::steady_timer& timer, TimePoint time, Step step) {
    timer.expires_at(time);
    timer.async_wait([weak = weak_from_this(), step](error_code error) {
      auto self = weak.lock();
      if (error || !self || self->over_) return;
      if (self->released_ && step != &Impl::Finish) return;  // the timer had fired before Release() cancelled it
      (self.get()->*step)();
    });
  }
  // An ApiClient::Done that calls `heard`, unless this object is closed.
  ApiClient::Done To(Heard heard) {
    return [weak = weak_from_this(), heard](StatusOr<Json> answer) {
      auto self = weak.lock();
      if (self && !self->over_) (self.get()->*heard)(std::move(answer));
    };
  }

  void Try();
  void Read();
  void Looked(StatusOr<Json> lease);
  void Write();
  void Wrote(StatusOr<Json> lease);
  void TooLong() { Failed(absl::UnavailableError("the API server does not answer in time"), true); }
  void Failed(const Status& why, bool unanswered = false);
  void Later();  // plans the next try of a candidate
  void TooLate() {
    if (MayAct()) return;  // it was renewed after the timer had fired
    Lose(fmt::format("the lease {}/{} could not be renewed in time{}{}", ns_, name_, failure_.empty() ? "" : ": ",
                     failure_));
  }
  void Lose(const std::string& why) {
    const auto self = shared_from_this();
    Close();
    events_.lost(why);
  }
  // Says each text once in a row.
  void Say(const std::string& text) {
    if (std::exchange(said_, text) != text) events_.say(text);
  }
  void GiveBack();
  void GaveBack(StatusOr<Json> lease);
  void Finish();

  ApiClient& client_;
  const std::string ns_, name_, identity_;
  const LeaseRules rules_;
  const Events events_;
  asio::steady_timer next_;   // the next try
  asio::steady_timer limit_;  // of one try, or of Release
  asio::steady_timer end_;    // of the leadership
  std::mt19937 random_;
  ApiClient::Handle under_way_;
  Json lease_;  // as last read or written
  SeenLease seen_;
  bool leads_ = false, over_ = false;
  TimePoint began_;    // when the current try began
  TimePoint renewed_;  // when the last try that succeeded began
  std::string failure_, said_;
  std::function<void()> released_;
};

void Leader::Impl::Try() {
  began_ = MonotonicClock::now();
  if (leads_ && !MayAct()) return TooLate();
  At(limit_, began_ + rules_.renew_deadline / 2, &Impl::TooLong);
  // A leader writes without reading: if another process has changed the Lease, the write conflicts.
  leads_ ? Write() : Read();
}

void Leader::Impl::Read() { under_way_ = client_.Get(kLeases, ns_, name_, To(&Impl::Looked)); }

void Leader::Impl::Looked(StatusOr<Json> lease) {
  if (!lease.ok() && !absl::IsNotFound(lease.status())) return Failed(lease.status());
  lease_ = lease.ok() ? *std::move(lease) : Json();
  const TimePoint now = MonotonicClock::now();
  See(lease_, now, &seen_);
  const LeaseStep step = NextLeaseStep(seen_, identity_, rules_, now);
  if (leads_ && seen_.there && seen_.holder != identity_) {
    return Lose(fmt::format("the lease {}/{} has another holder now: {}", ns_, name_, Quoted(seen_.holder)));
  }
  if (step != LeaseStep::kWait) return Write();
  Say(fmt::format("waiting: {} holds the lease {}/{}", Quoted(seen_.holder), ns_, name_));
  Later();
}

void Leader::Impl::Write() {
  began_ = MonotonicClock::now();
  const Json held = HeldLease(lease_, ns_, name_, identity_, rules_, WallNow());
  under_way_ = lease_.is_object() ? client_.Replace(kLeases, ns_, name_, held, To(&Impl::Wrote))
                                  : client_.Create(kLeases, ns_, held, To(&Impl::Wrote));
}

void Leader::Impl::Wrote(StatusOr<Json> lease) {
  // Another process wrote the Lease, or the answer to an own write was lost: Read shows which.
  const Status& status = lease.status();
  const bool changed = absl::IsAborted(status) || absl::IsAlreadyExists(status) || absl::IsNotFound(status);
  if (changed && leads_) return Read();
  if (changed) return Later();
  if (!lease.ok()) return Failed(status);
  lease_ = *std::move(lease);
  See(lease_, MonotonicClock::now(), &seen_);
  renewed_ = began_;
  failure_.clear();
  limit_.cancel();
  const bool begins = !std::exchange(leads_, true);
  if (!MayAct()) return TooLate();  // this process was stopped meanwhile
  At(end_, renewed_ + rules_.renew_deadline, &Impl::TooLate);
  At(next_, MonotonicClock::now() + rules_.retry, &Impl::Try);
  if (!said_.empty()) Say(fmt::format("the lease {}/{} is held", ns_, name_));
  said_.clear();
  if (begins) events_.began();
}

void Leader::Impl::Later() {
  limit_.cancel();
  const double jitter = std::uniform_real_distribution<double>(0, 1)(random_);
  At(next_, MonotonicClock::now() + rules_.retry + Spread(rules_.retry, jitter), &Impl::Try);
}

void Leader::Impl::Failed(const Status& why, bool unanswered) {
  under_way_.reset();
  limit_.cancel();
  failure_ = Message(why);
  At(next_, MonotonicClock::now() + PauseAfterFailure(leads_, unanswered, rules_), &Impl::Try);
  Say(fmt::format("the lease {}/{}: {}; trying again", ns_, name_, failure_));
}

void Leader::Impl::Release(std::function<void()> done) {
  if (over_) return asio::post(next_.get_executor(), std::move(done));
  const bool held = MayAct();
  leads_ = false;
  released_ = std::move(done);
  under_way_.reset();
  next_.cancel();
  end_.cancel();
  At(limit_, MonotonicClock::now() + (held ? kReleaseTime : Duration::zero()), &Impl::Finish);
  if (held) GiveBack();
}

void Leader::Impl::GiveBack() {
  under_way_ = client_.Replace(kLeases, ns_, name_, ReleasedLease(lease_, WallNow()), To(&Impl::GaveBack));
}

// A renewal may have succeeded first: then the Lease has another version but this holder, and is released again.
// NOLINTNEXTLINE(performance-unnecessary-value-param): `To` takes handlers of this type
void Leader::Impl::GaveBack(StatusOr<Json> lease) {
  if (!absl::IsAborted(lease.status())) return Finish();
  under_way_ = client_.Get(kLeases, ns_, name_, [weak = weak_from_this()](StatusOr<Json> now_there) {
    auto self = weak.lock();
    if (!self || self->over_) return;
    if (!now_there.ok()) return self->Finish();
    self->lease_ = *std::move(now_there);
    See(self->lease_, MonotonicClock::now(), &self->seen_);
    self->seen_.holder == self->identity_ ? self->GiveBack() : self->Finish();
  });
}

void Leader::Impl::Finish() {
  const auto self = shared_from_this();
  Close();
  if (released_) std::exchange(released_, nullptr)();
}

Leader::Leader(asio::io_context& loop, ApiClient& client, std::string ns, std::string name, std::string identity,
               LeaseRules rules, Events events)
    : impl_(std::make_shared<Impl>(loop, client, std::move(ns), std::move(name), std::move(identity), rules,
                                   std::move(events))) {}
Leader::~Leader() { impl_->Close(); }
void Leader::Begin() { impl_->Begin(); }
bool Leader::MayAct() const { return impl_->MayAct(); }
std::optional<TimePoint> Leader::deadline() const { return impl_->deadline(); }
void Leader::Release(std::function<void()> done) { impl_->Release(std::move(done)); }

}  // namespace muster::controller
