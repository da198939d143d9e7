// SPDX-License-Identifier: Apache-2.0
#include "agent/standby/learning.h"

#include "base/log.h"
#include "base/text.h"
#include "launcher/process.h"

namespace muster::agent::standby {
namespace {

constexpr int kMostTries = 3;  // since a round may end before its Python has begun

}  // namespace

bool Learning::unseen() const { return !seen_ && tries_ == kMostTries; }

void Learning::Ask(launcher::WorkerSpec* worker, int archive) {
  auto channel = PythonChannel::Open(loop_, LearnerEvents());
  if (!channel.ok()) return;  // the next round tries again
  learner_ = Learner{.channel = *std::move(channel)};
  worker->marks = worker->environment;
  PythonStart start = learner_->channel->StartWith(worker->environment, Mode::kLearn, archive, {});
  worker->environment = std::move(start.environment);
  worker->kept.insert(worker->kept.end(), start.descriptors.begin(), start.descriptors.end());
  worker->start = [this](const launcher::ProcessSpec& process) -> StatusOr<pid_t> {
    MUSTER_ASSIGN_OR_RETURN(learner_->pid, launcher::StartProcess(process));
    learner_->channel->Started();
    ++tries_;
    return learner_->pid;
  };
}

void Learning::Follow(std::unique_ptr<PythonChannel> channel, pid_t pid) {
  seen_ = true;  // as a standby
  if (!imports_.names().empty()) source_ = Source::kWorker;
  channel->Redirect(LearnerEvents());
  learner_ = Learner{std::move(channel), pid};
}

PythonChannel::Events Learning::LearnerEvents() {
  return {.frame = [this](const Frame& frame) { OnFrame(frame); },
          .ended = [this](const Status&) { learner_.reset(); }};
}

void Learning::OnFrame(const Frame& frame) {
  seen_ = seen_ || IsHelloOf(frame, learner_->pid);
  if (!seen_ || frame.letter != Letter::kNames) return;
  Take(Source::kWorker, SplitParts(frame.body));
  events_.told();
}

void Learning::HearNode(const std::vector<std::string>& names) {
  if (wants_imports()) Take(Source::kOtherNode, names);
}

void Learning::HearText(const std::vector<std::string>& names) {
  if (source_ <= Source::kText) Take(Source::kText, names);
}

void Learning::HearFacts(const StatusOr<ScriptFacts>& facts) {
  if (facts_ || !facts.ok()) return;
  facts_ = *facts;
  if (!wants_imports()) return;
  if (const auto kept = ReadKeptImports(*facts); !kept.empty()) Take(Source::kLastRun, kept);
}

// A worker here shows the names bit by bit, in order: they replace the others.
void Learning::Take(Source source, const std::vector<std::string>& names) {
  const bool better = source > std::exchange(source_, source);
  if (!options_.standby.imports.empty()) return;
  if (better && !imports_.names().empty()) {
    imports_.Clear();
    events_.replaced();
  }
  const bool went_on = imports_.end().empty();
  for (const std::string& name : names) imports_.Add(name);
  if (went_on && !imports_.end().empty()) {
    log::Info(fmt::format("standby workers leave out what the script imports after it has changed {}", imports_.end()));
  }
}

bool Learning::LeaveOut(Letter letter, const std::string& module, const std::string& does) {
  if (letter == Letter::kEnd) {
    imports_.EndAt(module, does);
    log::Info(fmt::format("standby workers import neither {} nor what comes after it: importing it {}", module, does));
    return true;
  }
  if (!imports_.LeaveOut(module)) return false;
  log::Info(fmt::format("standby workers do not import {} from now on: importing it {}", module, does));
  return true;
}

void Learning::Keep() {
  if (!facts_ || source_ != Source::kWorker || !options_.standby.imports.empty()) return;
  if (std::exchange(kept_, imports_.names().size()) == imports_.names().size()) return;
  if (const Status kept = KeepImports(*facts_, imports_.names()); !kept.ok()) {
    log::Debug(fmt::format("what the script imports is not kept for its next run: {}", Message(kept)));
  }
}

}  // namespace muster::agent::standby
