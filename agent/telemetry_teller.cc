// SPDX-License-Identifier: Apache-2.0
#include "agent/telemetry_teller.h"

#include <algorithm>

#include "base/environment.h"

namespace muster::agent {
namespace {

constexpr Duration kPause = std::chrono::seconds(1);

}  // namespace

TelemetryTeller::TelemetryTeller(boost::asio::io_context& loop, launcher::Reaper& reaper, Sources sources)
    : timer_(loop), sources_(std::move(sources)), gpus_(loop, reaper) {}

void TelemetryTeller::Want() {
  const bool tells = until_.has_value();
  until_ = MonotonicClock::now() + rendezvous::kTelemetryTime;
  if (tells) return;
  gpus_.Begin();
  Tell();
}

void TelemetryTeller::AddUse(rendezvous::Telemetry& facts) {
  const TimePoint now = MonotonicClock::now();
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
  const auto visible = Environment::OfProcess().Get("CUDA_VISIBLE_DEVICES");
  const std::vector<GpuUse> uses = DealGpus(gpus_.gpus(), visible, facts.ranks.size());
  for (size_t rank = 0; rank < uses.size(); ++rank) {
    facts.ranks[rank].gpu_share = uses[rank].share;
    facts.ranks[rank].gpu_memory_bytes = uses[rank].memory_bytes;
  }
}

void TelemetryTeller::Tell() {
  rendezvous::Telemetry facts = sources_.facts();
  AddUse(facts);
  sources_.tell(facts);
  timer_.expires_after(kPause);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || !until_) return;
    if (MonotonicClock::now() < *until_) return Tell();
    until_.reset();
    used_.clear();
    gpus_.End();
  });
}

}  // namespace muster::agent
