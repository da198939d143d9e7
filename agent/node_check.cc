// SPDX-License-Identifier: Apache-2.0
#include "agent/node_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <optional>
#include <utility>

#include "agent/flags/early_signals.h"
#include "agent/probe/check_report.h"
#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/host_names.h"
#include "base/log.h"
#include "base/text.h"
#include "base/utf8.h"
#include "launcher/worker_group.h"

namespace muster::agent {
namespace {

constexpr auto kKillAfter = std::chrono::seconds(5);  // after SIGTERM at the deadline
constexpr auto kLeftovers = std::chrono::seconds(1);  // the same for processes that the check left running
constexpr auto kLongest = std::chrono::hours(24 * 365);
constexpr size_t kCommandShown = 200;
constexpr size_t kLineShown = 500;
constexpr std::string_view kBuiltin = "builtin";

// The reason on stderr; else the last line of stdout that is not blank.
std::string Why(const launcher::ExitRecord& exit) {
  if (!exit.stderr_reason.empty()) return exit.stderr_reason;
  for (auto line = exit.stdout_tail.rbegin(); line != exit.stdout_tail.rend(); ++line) {
    if (std::string_view text = Strip(*line); !text.empty()) return Abbreviated(text, kLineShown);
  }
  return {};
}

std::string How(const launcher::ExitRecord& exit) {
  std::string how = exit.signal == 0 ? fmt::format("ended with {}", exit.exit_code)
                                     : fmt::format("was killed by {}", SignalName(exit.signal));
  if (exit.oom_killed) how += fmt::format(" ({})", DescribeOom(exit.exit_code));
  return how;
}

bool IsBuiltin(std::string_view check) { return Split(check, ' ').front() == kBuiltin; }

}  // namespace

void OwnFailures::Failed(const std::vector<WorkerFailure>& failures) {
  bool own = std::any_of(failures.begin(), failures.end(), [](const WorkerFailure& f) { return !f.consequence; });
  (own ? own_ : consequence_) = true;
}

bool OwnFailures::RoundEnds() {
  if (own_) {
    ++in_a_row_;
  } else if (!consequence_) {
    in_a_row_ = 0;
  }
  if (in_a_row_ < 2) return false;
  in_a_row_ = 0;
  return true;
}

std::vector<std::string> NodeCheckCommand(const std::string& check, const std::vector<std::string>& peers,
                                          const std::string& disk, const HostFs& fs) {
  std::vector<std::string> words;
  for (std::string_view word : Split(check, ' ')) {
    if (!word.empty()) words.emplace_back(word);
  }
  if (IsBuiltin(check)) {
    std::vector<std::string> command = {"/proc/self/exe", "check", "--json"};
    if (!disk.empty()) command.push_back(fmt::format("--disk={}", disk));
    if (!peers.empty()) command.push_back(fmt::format("--peers={}", Join(peers, ",")));
    command.insert(command.end(), words.begin() + 1, words.end());  // the user's flags, which win as the last ones
    return command;
  }
  if (fs.IsExecutable("/bin/sh")) return {"/bin/sh", "-c", check};
  return words;
}

class NodeCheck::Impl {
 public:
  Impl(Host host, std::function<void(const std::string&)> failed)
      : loop_(host.loop),
        reaper_(host.reaper),
        console_(host.console),
        options_(host.options),
        failed_(std::move(failed)),
        deadline_(host.loop) {}

  void Run(std::function<void()> passed) {
    if (options_.check.command.empty()) return passed();
    passed_ = std::move(passed);
    exit_.reset();
    over_time_ = false;
    started_ = MonotonicClock::now();
    shown_ = Abbreviated(options_.check.command, kCommandShown);
    log::Info(fmt::format("node check: `{}`", shown_));
    group_ = std::make_unique<launcher::WorkerGroup>(
        loop_, reaper_, console_,
        launcher::WorkerGroupEvents{.worker_exited = [this](const launcher::ExitRecord& exit) { Exited(exit); },
                                    .all_gone = [this] { boost::asio::post(loop_, [this] { Gone(); }); }});
    if (Status status = Start(); !status.ok()) {
      group_.reset();
      return Fail(fmt::format("`{}` cannot be started: {}", shown_, Message(status)));
    }
    deadline_.expires_after(std::min<Duration>(options_.check.timeout, kLongest));
    deadline_.async_wait([this](boost::system::error_code error) {
      if (error || group_ == nullptr || exit_) return;
      over_time_ = true;
      group_->Stop(SIGTERM, kKillAfter);
    });
  }

  bool Stop(int signal, Duration grace, std::function<void()> gone) {
    if (group_ == nullptr) return false;
    gone_ = std::move(gone);
    group_->Stop(signal, grace);
    return true;
  }

  void BeforeReady(std::function<void()> passed) {
    if (group_ != nullptr || failing_) return;  // the running check calls its own `passed` at its end
    if (std::exchange(judged_, true)) return passed();
    if (!failures_.RoundEnds() || options_.check.command.empty()) return passed();
    log::Info("this node failed twice in a row: it is checked before it goes on");
    Run(std::move(passed));
  }

  void RoundBegins() {
    judged_ = false;
    failures_.RoundBegins();
  }
  void WorkersFailed(const std::vector<WorkerFailure>& failures) { failures_.Failed(failures); }

  const std::map<std::string, double>& measured() const { return measured_; }

 private:
  Status Start() {
    launcher::WorkerSpec spec;
    bool alone = options_.job.standalone || options_.job.shared.max_nodes == 1 || options_.job.endpoint.host.empty();
    std::vector<std::string> peers;
    if (!alone) peers.push_back(JoinHostPort(options_.job.endpoint.host, options_.job.endpoint.port));
    spec.argv = NodeCheckCommand(options_.check.command, peers, options_.logs.Folder());
    if (spec.argv.empty()) return absl::InvalidArgumentError("it is empty");
    spec.environment = Environment::OfProcess().entries();
    spec.output.out.prefix = spec.output.err.prefix = "[node check] ";
    spec.output.out.keep_tail = spec.output.err.keep_tail = true;
    spec.output.out.console = !IsBuiltin(options_.check.command);  // its figures are logged as a sentence
    spec.in = open("/dev/null", O_RDONLY | O_CLOEXEC);             // stdin is for the workers
    Status status = group_->Start({spec});
    if (spec.in >= 0) close(spec.in);
    return status;
  }

  void Exited(const launcher::ExitRecord& exit) {
    exit_ = exit;
    deadline_.cancel();
    group_->Stop(SIGTERM, kLeftovers);
  }

  // No process of the check is left.
  void Gone() {
    if (group_ == nullptr) return;
    if (!exit_ && !group_->records().empty()) exit_ = group_->records().front();
    group_.reset();
    deadline_.cancel();
    if (gone_) return std::exchange(gone_, nullptr)();
    auto took = std::chrono::duration<double>(MonotonicClock::now() - started_).count();
    if (over_time_) {
      auto limit = std::chrono::duration<double>(options_.check.timeout).count();
      return Fail(fmt::format("`{}` did not end within {:.10g} s", shown_, limit));
    }
    if (!exit_) return Fail(fmt::format("`{}` could not be ended", shown_));
    if (exit_->exit_code != 0) {
      std::string line = Why(*exit_);
      return Fail(fmt::format("`{}` {}{}{}", shown_, How(*exit_), line.empty() ? "" : ": ", line));
    }
    measured_ = exit_->stdout_tail.empty() ? std::map<std::string, double>() : ReadMeasured(exit_->stdout_tail.back());
    log::Info(fmt::format("node check passed after {:.1f} s{}", took, DescribeMeasured(measured_)));
    std::exchange(passed_, nullptr)();
  }

  void Fail(const std::string& why) {
    failing_ = true;
    boost::asio::post(loop_, [this, reason = fmt::format("node check failed: {}", why)] { failed_(reason); });
  }

  boost::asio::io_context& loop_;
  launcher::Reaper& reaper_;
  launcher::Console& console_;
  const RunOptions& options_;
  const std::function<void(const std::string&)> failed_;
  boost::asio::steady_timer deadline_;
  std::unique_ptr<launcher::WorkerGroup> group_;  // while a check runs
  std::optional<launcher::ExitRecord> exit_;
  bool over_time_ = false;
  bool failing_ = false;
  TimePoint started_{};
  std::string shown_;
  std::function<void()> passed_;
  std::function<void()> gone_;  // set while Stop() waits
  std::map<std::string, double> measured_;
  OwnFailures failures_;
  bool judged_ = false;  // BeforeReady() has looked at this round's end
};

NodeCheck::NodeCheck(Host host, std::function<void(const std::string&)> failed)
    : impl_(std::make_unique<Impl>(host, std::move(failed))) {}
NodeCheck::~NodeCheck() = default;

void NodeCheck::Run(std::function<void()> passed) { impl_->Run(std::move(passed)); }
const std::map<std::string, double>& NodeCheck::measured() const { return impl_->measured(); }
void NodeCheck::RoundBegins() { impl_->RoundBegins(); }
void NodeCheck::WorkersFailed(const std::vector<WorkerFailure>& failures) { impl_->WorkersFailed(failures); }
void NodeCheck::BeforeReady(std::function<void()> passed) { impl_->BeforeReady(std::move(passed)); }
bool NodeCheck::Stop(int signal, Duration grace, std::function<void()> gone) {
  return impl_->Stop(signal, grace, std::move(gone));
}

int RunNodeCheck(const RunOptions& options, std::string* reason) {
  if (options.check.command.empty()) return 0;
  boost::asio::io_context loop(1);
  launcher::Reaper reaper(loop);
  launcher::Console console(loop);
  int code = 0;
  auto end = [&](int with) {
    code = with;
    loop.stop();
  };
  NodeCheck check({loop, reaper, console, options}, [&](const std::string& why) {
    *reason = why;
    end(kExitNodeUnhealthy);
  });
  boost::asio::signal_set signals(loop, SIGTERM, SIGINT);
  int first = 0;
  std::function<void()> await = [&] {
    signals.async_wait([&](boost::system::error_code error, int signal) {
      if (error) return;
      await();
      const bool second = first != 0;  // a second signal kills
      if (second) log::Warning(fmt::format("{} again: the node check gets SIGKILL", SignalName(signal)));
      if (!second) first = signal;
      *reason = fmt::format("stopped by {} while the node check ran", SignalName(first));
      auto gone = [&] { end(128 + first); };
      const Duration grace = second ? Duration::zero() : options.signals.shutdown_timeout;
      if (!check.Stop(second ? SIGKILL : signal, grace, gone)) gone();
    });
  };
  await();
  ReleaseSignals({SIGTERM, SIGINT});
  check.Run([&] { end(0); });
  loop.run();
  console.Drain(std::chrono::seconds(2));
  return code;
}

}  // namespace muster::agent
