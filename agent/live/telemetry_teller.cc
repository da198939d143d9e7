#include "agent/live/telemetry_teller.h"

namespace muster::agent {
namespace {

constexpr Duration kPause = std::chrono::seconds(1);

}  // namespace

TelemetryTeller::TelemetryTeller(boost::asio::io_context& loop, Sources sources)
    : timer_(loop), sources_(std::move(sources)) {}

void TelemetryTeller::Want() {
  const bool tells = until_.has_value();
  until_ = MonotonicClock::now() + rendezvous::kTelemetryTime;
  if (!tells) Tell();
}

void TelemetryTeller::Stop() {
  until_.reset();
  timer_.cancel();
}

void TelemetryTeller::Tell() {
  const TimePoint now = MonotonicClock::now();
  rendezvous::Telemetry facts = sources_.facts();
  std::set<pid_t> groups;  // each worker leads one
  for (const auto& rank : facts.ranks) {
    if (!rank.exit_code) groups.insert(static_cast<pid_t>(rank.pid));
  }
  std::map<pid_t, launcher::GroupUse> used = launcher::UseOf(groups);
  const double passed = std::chrono::duration<double>(now - looked_at_).count();
  for (auto& rank : facts.ranks) {
    const auto use = used.find(static_cast<pid_t>(rank.pid));
    if (use == used.end()) continue;
    rank.memory_bytes = use->second.memory_bytes;
    const auto before = used_.find(use->first);
    if (before == used_.end() || passed <= 0) continue;
    // A process that has ended and was not waited for takes its time with it.
    const Duration cpu = std::max(Duration{}, use->second.cpu - before->second.cpu);
    rank.cpus = std::chrono::duration<double>(cpu).count() / passed;
  }
  used_ = std::move(used);
  looked_at_ = now;
  sources_.tell(facts);
  timer_.expires_after(kPause);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || !until_) return;
    if (MonotonicClock::now() < *until_) return Tell();
    until_.reset();
    used_.clear();
  });
}

}  // namespace muster::agent
