// SPDX-License-Identifier: Apache-2.0
#include "agent/hang_guard.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agent/hang_evidence.h"
#include "base/descriptors.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"

namespace muster::agent {
namespace {

// Of the stacks in the log.
constexpr size_t kWorkersTold = 4;
constexpr size_t kLinesTold = 40;  // of a worker
constexpr size_t kBytesTold = 8 << 10;

// The number at the start of a heartbeat file, such as "120\n" or "120 0.5\n".
std::optional<int64_t> StepIn(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  char text[64];
  ssize_t length = file.ok() ? read(file.get(), text, sizeof text) : -1;
  if (length <= 0) return std::nullopt;
  std::string_view number = Strip(std::string_view(text, static_cast<size_t>(length)));
  return ParseInt(number.substr(0, number.find_first_of(" \t\r\n")));
}

// The first lines of a file, as far as they can be read without waiting. Empty: there are none.
std::vector<std::string> HeadOf(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  std::string text(kBytesTold, '\0');
  const ssize_t length = file.ok() ? read(file.get(), text.data(), text.size()) : 0;
  text.resize(length > 0 ? static_cast<size_t>(length) : 0);
  std::vector<std::string> lines;
  for (std::string_view line : Split(Strip(text), '\n')) {
    if (lines.size() < kLinesTold && !line.empty()) lines.emplace_back(line);
  }
  return lines;
}

void LookAt(const std::string& path, RankSeen& rank, TimePoint now) {
  struct stat found {};
  if (path.empty() || stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return;
  FileStamp stamp{found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec, found.st_size, found.st_ino};
  if (rank.stamp == stamp) return;
  NoteBeat(rank, stamp, StepIn(path), now);
}

}  // namespace

class HangGuard::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, launcher::Reaper& reaper, const HangOptions& options, HangEvents events)
      : loop_(loop), reaper_(reaper), options_(options), events_(std::move(events)), timer_(loop) {}

  void Begin(Attempt& attempt) {
    End();
    if (!options_.on()) return;
    attempt_ = &attempt;
    facts_ = {};
    facts_.started = MonotonicClock::now();
    facts_.others_silent = attempt.assignment().node_count == 1;
    silent_ = false;
    for (int local_rank = 0; local_rank < attempt.assignment().seat.node.slots; ++local_rank) {
      facts_.ranks.emplace_back().local_rank = local_rank;
    }
    Look();
  }

  void AllSilent() {
    if (attempt_ == nullptr) return;
    facts_.others_silent = true;
    Look();
    facts_.others_silent = false;  // until the next AllSilent()
  }

  void End() {
    ++generation_;
    attempt_ = nullptr;
    evidence_.reset();
    gathering_ = false;
    timer_.cancel();
  }

  void Gather(Attempt& attempt, std::function<void()> done) {
    End();
    gathering_ = true;
    folder_ = attempt.paths().folder;
    auto finished = [this, generation = generation_, done = std::move(done)] {
      if (generation != generation_) return;
      gathering_ = false;
      done();
    };
    std::vector<EvidenceTarget> targets = attempt.EvidenceTargets();
    if (targets.empty()) {
      boost::asio::post(loop_, [self = shared_from_this(), finished] { finished(); });
      return;
    }
    log::Info(fmt::format("a hang: keeping the stacks of {} in {}", Counted(targets.size(), "worker"), folder_));
    EvidenceOptions how;
    how.signal = options_.signal;
    how.environment = Environment::OfProcess().entries();
    const int first_rank = attempt.assignment().seat.first_rank;
    evidence_ = std::make_unique<HangEvidence>(loop_, reaper_, targets, std::move(how),
                                               [this, finished, targets, first_rank](const EvidenceCount& count) {
                                                 Say(count);
                                                 SayStacks(targets, first_rank);
                                                 finished();
                                               });
  }

  bool gathering() const { return gathering_; }

 private:
  void Look() {
    TimePoint now = MonotonicClock::now();
    for (RankSeen& rank : facts_.ranks) {
      rank.ended = attempt_->Ended(rank.local_rank);
      if (options_.step_timeout && !rank.ended) LookAt(attempt_->paths().HeartbeatFile(rank.local_rank), rank, now);
    }
    if (options_.log_timeout) facts_.output = attempt_->LastOutput();
    if (std::string warning = told_ ? "" : NeverBeat(options_, facts_, now); !warning.empty()) {
      told_ = true;
      log::Warning(warning);
    }
    HangJudgement judgement = Judge(options_, facts_, now);
    if (!judgement.hangs.empty()) return Report(judgement);
    if (judgement.silent != silent_) {
      silent_ = judgement.silent;
      log::Debug(silent_ ? "no worker of this node has written anything for --hang-log-timeout"
                         : "workers of this node write again");
      Post([silent = silent_](const HangEvents& events) { events.silent(silent); });
    }
    if (!judgement.look_again) return;
    timer_.expires_at(*judgement.look_again);
    timer_.async_wait([weak = weak_from_this(), generation = generation_](boost::system::error_code error) {
      auto self = weak.lock();
      if (self && !error && generation == self->generation_) self->Look();
    });
  }

  void Report(const HangJudgement& judgement) {
    std::vector<WorkerFailure> failures;
    for (const Hang& hang : judgement.hangs) failures.push_back(attempt_->HangFailure(hang.local_rank, hang.evidence));
    if (judgement.all_silent) {  // one failure of the whole job, without a rank
      failures.resize(1);
      failures.front().rank = failures.front().local_rank = -1;
      failures.front().pid = 0;
    }
    Post([failures](const HangEvents& events) { events.hangs(failures); });
  }

  void Post(std::function<void(const HangEvents&)> tell) {
    boost::asio::post(loop_, [weak = weak_from_this(), generation = generation_, tell = std::move(tell)] {
      auto self = weak.lock();
      if (self && generation == self->generation_) tell(self->events_);
    });
  }

  void Say(const EvidenceCount& count) {
    std::string text = fmt::format("evidence of the hang in {}: threads of {} workers", folder_, count.stacks);
    if (count.python > 0) text += fmt::format(", Python stacks of {} processes", count.python);
    if (count.dumps > 0) text += fmt::format(", {} dumps of the flight recorder", count.dumps);
    if (count.dumps_missing > 0) text += fmt::format(", {} dumps are missing", count.dumps_missing);
    log::Info(text);
    if (count.no_py_spy) {
      log::Warning(
          "py-spy is not on PATH: the evidence has only kernel stacks; `pip install py-spy` in the image adds "
          "Python's");
    }
  }

  // The folder of a pod is gone with the pod; its log is kept. So the log gets the head of each worker's stacks: those
  // of Python where py-spy has written them, else the kernel's.
  void SayStacks(const std::vector<EvidenceTarget>& targets, int first_rank) {
    for (size_t at = 0; at < std::min(targets.size(), kWorkersTold); ++at) {
      const EvidenceTarget& target = targets[at];
      std::vector<std::string> lines = HeadOf(fmt::format("{}/python_{}.txt", target.folder, target.pid));
      if (lines.empty()) lines = HeadOf(target.folder + "/hang.txt");
      for (const std::string& line : lines) {
        log::Info(fmt::format("stacks of rank {}: {}", first_rank + target.local_rank, line));
      }
    }
    if (targets.size() > kWorkersTold) {
      log::Info(
          fmt::format("stacks of {} are only in {}", Counted(targets.size() - kWorkersTold, "other worker"), folder_));
    }
  }

  boost::asio::io_context& loop_;
  launcher::Reaper& reaper_;
  const HangOptions& options_;
  const HangEvents events_;
  boost::asio::steady_timer timer_;
  Attempt* attempt_ = nullptr;
  HangFacts facts_;
  bool told_ = false;        // the warning of NeverBeat() was logged
  bool silent_ = false;      // what `silent` was called with last
  uint64_t generation_ = 0;  // callbacks of an older generation do nothing
  bool gathering_ = false;
  std::string folder_;
  std::unique_ptr<HangEvidence> evidence_;
};

HangGuard::HangGuard(boost::asio::io_context& loop, launcher::Reaper& reaper, const HangOptions& options,
                     HangEvents events)
    : impl_(std::make_shared<Impl>(loop, reaper, options, std::move(events))) {}
HangGuard::~HangGuard() { impl_->End(); }

void HangGuard::Begin(Attempt& attempt) { impl_->Begin(attempt); }
void HangGuard::AllSilent() { impl_->AllSilent(); }
void HangGuard::End() { impl_->End(); }
void HangGuard::Gather(Attempt& attempt, std::function<void()> done) { impl_->Gather(attempt, std::move(done)); }
bool HangGuard::gathering() const { return impl_->gathering(); }

}  // namespace muster::agent
