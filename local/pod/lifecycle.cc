// SPDX-License-Identifier: Apache-2.0
#include "local/pod/lifecycle.h"

#include <algorithm>

#include "base/iso_time.h"
#include "base/text.h"
#include "controller/api/lenient.h"

namespace muster::local {

using namespace controller;

namespace {

using std::chrono::seconds;

constexpr seconds kFirstPause{10}, kLongestPause{300};
constexpr std::chrono::minutes kLongLife{10};  // a run of this length resets the pauses

std::string ReasonOf(const ContainerEnd& end) {
  if (!end.reason.empty()) return end.reason;
  if (end.oom) return "OOMKilled";
  return end.exit_code == 0 ? "Completed" : "Error";
}

}  // namespace

PodLifecycle::PodLifecycle(const PodProgram& program, std::string address, WallTime now)
    : program_(program),
      address_(std::move(address)),
      created_(now),
      containers_(program.init_containers.size() + program.containers.size()) {}

size_t PodLifecycle::size() const { return containers_.size(); }

const ContainerProgram& PodLifecycle::Program(Position container) const {
  return IsInit(container) ? program_.init_containers[container]
                           : program_.containers[container - program_.init_containers.size()];
}

bool PodLifecycle::IsRunning(Position container) const { return containers_[container].state == State::kRunning; }

// Whether the ended container starts again by its policy; a sidecar: while other containers run or still may.
bool PodLifecycle::StartsAgain(Position container) const {
  const Container& it = containers_[container];
  if (stopped_ || it.state != State::kEnded) return false;
  if (IsSidecar(container)) return !AreContainersDone() && !HasInitFailed();
  switch (Program(container).restart) {
    case ContainerProgram::Restart::kNever:
      return false;
    case ContainerProgram::Restart::kOnFailure:
      return it.end->exit_code != 0 || it.unhealthy;
    case ContainerProgram::Restart::kAlways:
      return !IsInit(container) || it.end->exit_code != 0;
  }
  return false;
}

bool PodLifecycle::IsDone(Position container) const {
  return containers_[container].state == State::kEnded && !StartsAgain(container);
}

// Whether all containers that are no init containers have ended for good.
bool PodLifecycle::AreContainersDone() const {
  for (Position i = program_.init_containers.size(); i < containers_.size(); ++i) {
    if (!IsDone(i)) return false;
  }
  return true;
}

void PodLifecycle::Begin(Position container, Step* step, WallTime now) {
  Container& it = containers_[container];
  if (it.told_to_start) return;
  const WallTime due = it.ended + it.pause;
  if (it.state == State::kEnded && now < due) {
    step->again = step->again ? std::min(*step->again, due) : due;
    return;
  }
  it.told_to_start = true;
  step->start.push_back(container);
}

void PodLifecycle::End(Position container, Step* step) {
  Container& it = containers_[container];
  if (it.state != State::kRunning || it.told_to_stop) return;
  it.told_to_stop = true;
  step->stop.push_back(container);
}

// Starts, in order, the init containers that may run now. True: the containers behind them may start.
bool PodLifecycle::NextInit(Step* step, WallTime now) {
  const bool has_begun = HasBegun();
  for (Position i = 0; i < program_.init_containers.size(); ++i) {
    const Container& it = containers_[i];
    if (IsSidecar(i)) {
      if (it.state == State::kWaiting || StartsAgain(i)) Begin(i, step, now);
      if (!it.started && !has_begun) return false;
      continue;
    }
    if (it.state == State::kEnded && it.end->exit_code == 0) continue;
    if (it.state == State::kWaiting || StartsAgain(i)) Begin(i, step, now);
    return false;
  }
  return true;
}

bool PodLifecycle::HasInitFailed() const {
  for (Position i = 0; i < program_.init_containers.size(); ++i) {
    if (!IsSidecar(i) && IsDone(i) && containers_[i].end->exit_code != 0) return true;
  }
  return false;
}

bool PodLifecycle::HasBegun() const {
  return std::any_of(containers_.begin() + static_cast<std::ptrdiff_t>(program_.init_containers.size()),
                     containers_.end(),
                     [](const Container& it) { return it.state != State::kWaiting || it.told_to_start; });
}

bool PodLifecycle::IsInitialized() const {
  if (HasBegun()) return true;
  for (Position i = 0; i < program_.init_containers.size(); ++i) {
    const Container& it = containers_[i];
    if (IsSidecar(i) ? !it.started : it.state != State::kEnded || it.end->exit_code != 0) return false;
  }
  return true;
}

bool PodLifecycle::Runs(bool sidecars) const {
  for (Position i = 0; i < containers_.size(); ++i) {
    if (IsSidecar(i) != sidecars) continue;
    if (containers_[i].state == State::kRunning || containers_[i].told_to_start) return true;
  }
  return false;
}

PodLifecycle::Step PodLifecycle::Next(WallTime now) {
  Step step;
  const Position first = program_.init_containers.size();
  const bool failed = HasInitFailed();
  if (!stopped_ && !failed && NextInit(&step, now)) {
    for (Position i = first; i < containers_.size(); ++i) {
      if (containers_[i].state == State::kWaiting || StartsAgain(i)) Begin(i, &step, now);
    }
  }
  for (Position i = 0; i < containers_.size(); ++i) {
    if (containers_[i].unhealthy || (stopped_ && !IsSidecar(i))) End(i, &step);
  }
  if (Runs(false) || !(stopped_ || failed || AreContainersDone())) return step;
  for (Position i = first; i-- > 0;) {  // one after the other, the last one first
    if (!IsSidecar(i) || containers_[i].state != State::kRunning) continue;
    End(i, &step);
    break;
  }
  return step;
}

void PodLifecycle::Started(Position container, WallTime now) {
  Container& it = containers_[container];
  if (it.state == State::kEnded) {
    it.last = StateOf(container);
    ++it.restarts;
  }
  it.state = State::kRunning;
  it.told_to_start = it.told_to_stop = false;
  it.begun = now;
  it.unhealthy = false;
  it.grace.reset();
  it.started = !Program(container).startup;
  it.ready = it.started && !Program(container).readiness;
}

void PodLifecycle::Ended(Position container, ContainerEnd end, WallTime now) {
  Container& it = containers_[container];
  if (it.state != State::kRunning) Started(container, now);  // it failed to start
  const bool short_life = now - it.begun < kLongLife;
  const bool first = it.restarts == 0 || !short_life;
  it.pause = first ? seconds(0) : std::clamp(it.pause * 2, kFirstPause, kLongestPause);
  it.state = State::kEnded;
  it.told_to_start = it.told_to_stop = it.started = it.ready = false;
  it.ended = now;
  it.end = std::move(end);
}

void PodLifecycle::StartupDone(Position container) {
  Container& it = containers_[container];
  if (it.state != State::kRunning) return;
  it.started = true;
  if (!Program(container).readiness) it.ready = true;
}

void PodLifecycle::Ready(Position container, bool ready) {
  Container& it = containers_[container];
  if (it.state == State::kRunning) it.ready = ready && it.started;
}

void PodLifecycle::Unhealthy(Position container, std::optional<std::chrono::seconds> grace) {
  Container& it = containers_[container];
  if (it.state != State::kRunning || it.told_to_stop) return;
  it.unhealthy = true;
  it.grace = grace;
}

std::chrono::seconds PodLifecycle::Grace(Position container) const {
  return containers_[container].grace.value_or(program_.grace);
}

seconds PodLifecycle::Pause(Position container) const {
  return StartsAgain(container) ? containers_[container].pause : seconds(0);
}

void PodLifecycle::Stop(std::string reason, std::string message) {
  if (stopped_ || over()) return;
  stopped_ = true;
  reason_ = std::move(reason);
  message_ = std::move(message);
}

bool PodLifecycle::over() const {
  const std::string phase = Phase();
  return phase == "Succeeded" || phase == "Failed";
}

std::string PodLifecycle::Phase() const {
  const bool runs = Runs(false) || Runs(true);
  if (HasInitFailed()) return runs ? "Pending" : "Failed";
  bool succeeded = reason_.empty(), again = false;
  for (Position i = program_.init_containers.size(); i < containers_.size(); ++i) {
    const Container& it = containers_[i];
    if (it.state == State::kWaiting) return stopped_ && !runs ? "Failed" : "Pending";
    again = again || StartsAgain(i);
    succeeded = succeeded && it.end && it.end->exit_code == 0;
  }
  if (runs || again) return "Running";
  return succeeded ? "Succeeded" : "Failed";
}

Json PodLifecycle::StateOf(Position container) const {
  const Container& it = containers_[container];
  switch (it.state) {
    case State::kRunning:
      return {{"running", {{"startedAt", IsoMicroTime(it.begun)}}}};
    case State::kEnded: {
      Json end = {{"exitCode", it.end->exit_code},
                  {"reason", ReasonOf(*it.end)},
                  {"startedAt", IsoMicroTime(it.begun)},
                  {"finishedAt", IsoMicroTime(it.ended)}};
      PutText(end, "message", it.end->message);
      return {{"terminated", std::move(end)}};
    }
    case State::kWaiting:
      break;
  }
  return {{"waiting", {{"reason", "PodInitializing"}}}};
}

// A container that will start again is reported as waiting, with its end as the last state.
Json PodLifecycle::StatusOf(Position container) const {
  const Container& it = containers_[container];
  const bool comes_first = IsInit(container) && !IsSidecar(container);  // then ready means: it has succeeded
  Json status = {{"name", Program(container).name},
                 {"ready", comes_first ? it.state == State::kEnded && it.end->exit_code == 0 : it.ready},
                 {"started", it.started},
                 {"restartCount", it.restarts},
                 {"state", StateOf(container)}};
  if (it.state == State::kEnded && StartsAgain(container)) {
    status["lastState"] = std::move(status["state"]);
    const bool pauses = it.pause > seconds(0);
    status["state"] = {{"waiting", {{"reason", pauses ? "CrashLoopBackOff" : "ContainerCreating"}}}};
    if (pauses) {
      status["state"]["waiting"]["message"] = fmt::format("back-off {} s before it starts again", it.pause.count());
    }
  } else if (!it.last.is_null()) {
    status["lastState"] = it.last;
  }
  return status;
}

Json PodLifecycle::Status(const Json& old, WallTime now) const {
  const std::string phase = Phase();
  Json status = {{"phase", phase},     {"startTime", IsoMicroTime(created_)},
                 {"podIP", address_},  {"podIPs", Json::array({{{"ip", address_}}})},
                 {"hostIP", address_}, {"containerStatuses", Json::array()}};
  PutText(status, "reason", reason_);
  PutText(status, "message", message_);
  bool ready = phase == "Running";
  for (Position i = 0; i < containers_.size(); ++i) {
    status[IsInit(i) ? "initContainerStatuses" : "containerStatuses"].push_back(StatusOf(i));
    if (!IsInit(i) || IsSidecar(i)) ready = ready && containers_[i].ready;
  }
  const std::pair<const char*, bool> conditions[] = {
      {"PodScheduled", true}, {"Initialized", IsInitialized()}, {"ContainersReady", ready}, {"Ready", ready}};
  for (const auto& [type, holds] : conditions) {
    Json condition = {{"type", type}, {"status", holds ? "True" : "False"}, {"lastTransitionTime", IsoMicroTime(now)}};
    for (const Json& known : ListField(old, "conditions")) {
      if (TextField(known, "type") == type && TextField(known, "status") == TextField(condition, "status")) {
        condition = known;
      }
    }
    status["conditions"].push_back(std::move(condition));
  }
  return status;
}

}  // namespace muster::local
