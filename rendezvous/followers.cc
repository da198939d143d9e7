// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/followers.h"

#include <utility>

namespace muster::rendezvous {
namespace {

constexpr Duration kFollowPause = std::chrono::milliseconds(50);  // between two reports to a follower
constexpr Duration kViewPause = std::chrono::seconds(1);          // between two reports with telemetry
constexpr Duration kAskPause = std::chrono::seconds(5);           // a node that has come meanwhile is asked, too
// Of so many ranks the last lines would fill the largest message.
constexpr size_t kMostRanksWithLines = 16'384;

}  // namespace

void RoundMarks::Observe(const State& state, TimePoint now) {
  const Round& round = state.round;
  if (round.id.number < 0) return seen_.clear();
  if (seen_.empty() || seen_.back().mark.id != round.id) {
    // A round that ends together with the beginning of the next one.
    if (!seen_.empty() && !seen_.back().stopping) {
      seen_.back().stopping = now;
      seen_.back().mark.stop_reason = round.reason;
    }
    RoundMark mark{.id = round.id,
                   .nodes = static_cast<int>(round.seats.size()),
                   .world_size = round.world_size,
                   .restart_count = round.restart_count,
                   .cause = round.cause,
                   .reason = round.reason};
    seen_.push_back({std::move(mark), now, std::nullopt});
    if (seen_.size() > kMostMarks) seen_.pop_front();
  }
  const bool ends = state.phase != Phase::kRunning && state.phase != Phase::kReforming;
  if (!ends || seen_.back().stopping) return;
  seen_.back().stopping = now;
  seen_.back().mark.stop_reason = state.reason;
}

std::vector<RoundMark> RoundMarks::At(TimePoint now) const {
  std::vector<RoundMark> marks;
  for (const Seen& seen : seen_) {
    marks.push_back(seen.mark);
    marks.back().began = now - seen.began;
    if (seen.stopping) marks.back().stopping = now - *seen.stopping;
  }
  return marks;
}

Followers::Followers(boost::asio::io_context& loop, Sources sources)
    : soon_(loop), each_second_(loop), sources_(std::move(sources)) {}

void Followers::Add(PeerId id, bool telemetry) {
  followers_[id] = {telemetry};
  viewer_waits_ |= telemetry;
  if (telemetry) SendEachSecond();
}

std::vector<PeerId> Followers::Clear() {
  std::vector<PeerId> all;
  for (const auto& [id, follower] : followers_) all.push_back(id);
  followers_.clear();
  told_.clear();
  marks_ = {};
  looked_at_.reset();
  asked_at_.reset();
  return all;
}

void Followers::Observe(bool changed) {
  marks_.Observe(sources_.state(), MonotonicClock::now());
  if (changed) SendSoon();
}

void Followers::Tell(const std::string& node, const Telemetry& telemetry) {
  if (!looked_at_ || MonotonicClock::now() - *looked_at_ > kTelemetryTime) {
    told_.clear();
    return;
  }
  told_[node] = telemetry;
  if (viewer_waits_) SendSoon();
}

StatusReport Followers::Report(bool telemetry) {
  const TimePoint now = MonotonicClock::now();
  StatusReport report = Describe(sources_.state(), now);
  if (!telemetry) return report;
  Look();
  report.rounds = marks_.At(now);
  size_t ranks = 0;
  for (StatusLine& line : report.nodes) {
    const auto told = told_.find(line.node);
    if (told == told_.end()) continue;
    line.telemetry = told->second;
    if (line.rank != 0) line.telemetry->curve.clear();
    ranks += line.telemetry->ranks.size();
    if (ranks <= kMostRanksWithLines) continue;
    for (RankTelemetry& rank : line.telemetry->ranks) rank.last_line.clear();
  }
  return report;
}

void Followers::Look() {
  const TimePoint now = MonotonicClock::now();
  looked_at_ = now;
  if (asked_at_ && now - *asked_at_ < kAskPause) return;
  asked_at_ = now;
  std::erase_if(told_, [this](const auto& told) { return !sources_.state().members.contains(told.first); });
  sources_.ask_nodes();
}

void Followers::SendSoon() {
  if (followers_.empty() || soon_armed_) return;
  soon_armed_ = true;
  soon_.expires_after(kFollowPause);
  soon_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    auto self = weak.lock();
    if (!self || error) return;
    self->soon_armed_ = false;
    self->viewer_waits_ &= self->told_.empty();
    std::optional<StatusReport> plain, whole;
    for (const auto& [id, follower] : self->followers_) {
      std::optional<StatusReport>& report = follower.telemetry ? whole : plain;
      if (!report) report = self->Report(follower.telemetry);
      self->sources_.send(id, *report);
    }
  });
}

void Followers::SendEachSecond() {
  if (each_second_armed_) return;
  each_second_armed_ = true;
  each_second_.expires_after(kViewPause);
  each_second_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    auto self = weak.lock();
    if (!self || error) return;
    self->each_second_armed_ = false;
    std::optional<StatusReport> report;
    for (const auto& [id, follower] : self->followers_) {
      if (!follower.telemetry) continue;
      if (!report) report = self->Report(true);
      self->sources_.send(id, *report);
    }
    if (report) self->SendEachSecond();
  });
}

}  // namespace muster::rendezvous
