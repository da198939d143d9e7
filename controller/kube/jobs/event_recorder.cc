// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/event_recorder.h"

#include <boost/asio/steady_timer.hpp>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "controller/kube/jobs/event_ledger.h"
#include "controller/reconcile/back_off.h"

namespace muster::controller {

namespace asio = boost::asio;

namespace {

constexpr int kTries = 4;
constexpr size_t kMostUnderWay = 1000;
constexpr BackOffRules kPauses{std::chrono::seconds(1), std::chrono::seconds(10)};

}  // namespace

class EventRecorder::Impl : public std::enable_shared_from_this<EventRecorder::Impl> {
 public:
  Impl(asio::io_context& loop, ApiClient& client, std::string component)
      : loop_(loop), client_(client), ledger_(std::move(component), {}) {}

  EventLedger& ledger() { return ledger_; }

  // Writes an event. Each event has one write at a time: a repetition that comes meanwhile is written after it.
  void Write(const EventLedger::Key& key) {
    if (under_way_.size() >= kMostUnderWay) return;
    auto [write, added] = under_way_.try_emplace(key, loop_);
    if (added) {
      Try(key);
    } else {
      write->second.again = true;
    }
  }
  void Close() { under_way_.clear(); }

 private:
  struct UnderWay {
    explicit UnderWay(asio::io_context& loop) : pause(loop) {}
    asio::steady_timer pause;
    ApiClient::Handle call;
    int failures = 0;
    bool again = false;
  };

  void Try(const EventLedger::Key& key) {
    const auto body = ledger_.BodyOf(key);
    if (!body) {
      under_way_.erase(key);
      return;
    }
    auto done = [weak = weak_from_this(), key, body = *body](const StatusOr<Json>& answer) {
      if (auto self = weak.lock()) self->Heard(key, body, answer.status());
    };
    UnderWay& write = under_way_.at(key);
    write.again = false;
    write.call = body->create ? client_.Create(kEvents, body->ns, body->json, std::move(done))
                              : client_.Merge(kEvents, body->ns, body->name, "", body->json, std::move(done));
  }

  // Takes a copy of `key`: Try destroys the call that holds the original.
  // NOLINTNEXTLINE(performance-unnecessary-value-param)
  void Heard(EventLedger::Key key, const EventLedger::Body& body, const Status& status) {
    auto write = under_way_.find(key);
    if (write == under_way_.end()) return;
    if (status.ok() || absl::IsAlreadyExists(status)) {  // an earlier try may have created it
      ledger_.Written(key, body.count);
      if (write->second.again && ledger_.IsBehind(key)) return Try(key);
      under_way_.erase(write);
      return;
    }
    const bool gone = !body.create && absl::IsNotFound(status);  // API servers delete Events after an hour
    if (gone) ledger_.Vanished(key);
    const bool useful = gone || absl::IsUnavailable(status) || absl::IsAborted(status);
    if (!useful || ++write->second.failures >= kTries) {
      log::Warning(fmt::format("an event is not written: {}", Message(status)));
      under_way_.erase(write);
      return;
    }
    write->second.pause.expires_after(gone ? Duration::zero() : BackOff(kPauses, write->second.failures));
    write->second.pause.async_wait([weak = weak_from_this(), key](boost::system::error_code error) {
      auto self = weak.lock();
      if (!error && self && self->under_way_.contains(key)) self->Try(key);
    });
  }

  asio::io_context& loop_;
  ApiClient& client_;
  EventLedger ledger_;
  std::map<EventLedger::Key, UnderWay> under_way_;
};

EventRecorder::EventRecorder(asio::io_context& loop, ApiClient& client, std::string component)
    : impl_(std::make_shared<Impl>(loop, client, std::move(component))) {}
EventRecorder::~EventRecorder() { impl_->Close(); }

void EventRecorder::Record(std::string_view api_version, std::string_view kind, const Meta& about, bool warning,
                           std::string_view reason, std::string_view message, WallTime now) {
  const auto key = impl_->ledger().Note(api_version, kind, about, {warning, std::string(reason), std::string(message)},
                                        MonotonicClock::now(), now);
  if (key) impl_->Write(*key);
}

void EventRecorder::Forget(std::string_view api_version, std::string_view kind, const Meta& about) {
  impl_->ledger().Forget(api_version, kind, about);
}

}  // namespace muster::controller
