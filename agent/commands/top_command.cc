// SPDX-License-Identifier: Apache-2.0
// `muster top TARGET`: a run that goes on, as a screen that follows it; as tables or JSON where there is no terminal.
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstdio>

#include "agent/commands/command_line.h"
#include "agent/commands/commands.h"
#include "agent/flags/flag_values.h"
#include "agent/live/terminal_session.h"
#include "agent/live/top_argument.h"
#include "agent/live/top_frame.h"
#include "agent/live/top_session.h"
#include "agent/live/top_source.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "net/credentials.h"

namespace muster::agent {
namespace {

constexpr size_t kColumnsOfPipe = 160;
constexpr Duration kWholeLimit = std::chrono::seconds(3);  // nodes of an older version never tell of their workers

int Say(int code, std::string_view text) {
  PrintTo(stderr, "muster top: {}\n", text);
  return code;
}

struct TopFlags {
  std::string target;
  std::string name_space;
  std::string run_id;
  net::CredentialFiles files;
  std::string http_token_file;
  std::string timeout = "10";
  std::string interval = "1";
  bool once = false;
  bool json = false;
};

void AddFlags(Arguments& arguments, TopFlags* flags) {
  arguments.Text("TARGET", &flags->target,
                 "HOST[:PORT] of the rendezvous, http://HOST:PORT of an agent, trainjob/NAME, pytorchjob/NAME or "
                 "pod/NAME in a cluster (needs kubectl), or the name of a job of `muster local`",
                 {.required = true});
  arguments.Text("-n,--namespace", &flags->name_space, "namespace of trainjob/, pytorchjob/ and pod/; else kubectl's");
  arguments.Text("--run-id", &flags->run_id, "which run, where the coordinator has several");
  AddCredentialFlags(arguments, &flags->files);
  arguments.Text("--http-token-file", &flags->http_token_file, "file with the token of the agents' HTTP port",
                 {.metavar = "FILE", .variable = "MUSTER_HTTP_TOKEN_FILE"});
  arguments.Text("--timeout", &flags->timeout, "how long to wait for the first answer: 10, 0.5, 2m",
                 {.shows_default = true});
  arguments.Text("--interval", &flags->interval, "time between two tables, without a terminal",
                 {.shows_default = true});
  arguments.Switch("--once", &flags->once, "print one table, and end");
  arguments.Switch("--json", &flags->json, "one JSON object a line (docs/watching.md has the fields)");
}

// The folder of the local job of that name; empty: there is none.
std::string FolderOfJob(const std::string& name) {
  const auto state = StateFolder(Environment::OfProcess());
  if (!state.ok() || !IsJobName(name)) return "";
  const std::string folder = JobFolder(*state, name);
  struct stat facts {};
  return stat(RunRecordPath(folder).c_str(), &facts) == 0 ? folder : "";
}

size_t ColumnsOfStdout() {
  winsize told{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &told) == 0 && told.ws_col > 0 ? told.ws_col : kColumnsOfPipe;
}

// Prints a view as a table or as JSON, at most one in an interval.
class Printer {
 public:
  Printer(const TopFlags& flags, const TopTarget& target, Duration interval) : json_(flags.json), interval_(interval) {
    state_.facts.target = target;
  }

  // False: it was too early for another one.
  bool Print(const LiveView& view) {
    const TimePoint now = MonotonicClock::now();
    if (printed_ && now - *printed_ < interval_ - kEarly) return false;
    printed_ = now;
    state_.facts.came = now;
    const std::string text = json_ ? ToJson(view) + "\n" : PlainTable(view, state_, ColumnsOfStdout(), now) + "\n";
    PrintTo(stdout, "{}", text);
    std::fflush(stdout);
    return true;
  }
  void MustPrint() { printed_.reset(); }

 private:
  static constexpr Duration kEarly = std::chrono::milliseconds(300);  // views come once a second, more or less

  const bool json_;
  const Duration interval_;
  TopState state_;
  std::optional<TimePoint> printed_;
};

struct TopRun {
  TopFlags flags;
  TopTarget target;
  std::string job_folder;
  net::Credentials credentials;
  std::string http_token;
  Duration timeout{}, interval{};
};

std::unique_ptr<TopSource> SourceOf(boost::asio::io_context& loop, const TopRun& run, TopEvents events,
                                    std::function<void(const PodsByHost&)> pods) {
  std::unique_ptr<AgentPlaces> places;
  switch (run.target.kind) {
    case TopTarget::Kind::kCoordinator:
      return FollowCoordinator(loop, run.target.Text(), run.flags.run_id, run.credentials, run.timeout,
                               std::move(events));
    case TopTarget::Kind::kAgent:
      places = OneAgent(run.target);
      break;
    case TopTarget::Kind::kLocalJob:
      places = AgentsOfLocalJob(run.job_folder);
      break;
    case TopTarget::Kind::kPod:
    case TopTarget::Kind::kTrainJob:
    case TopTarget::Kind::kPyTorchJob:
      places = AgentsInCluster(loop, run.target, run.flags.name_space, std::move(pods));
      break;
  }
  return AskAgents(loop, std::move(places), run.flags.run_id, run.http_token, run.timeout, std::move(events));
}

// Whether each node that runs workers has told of them: with the first answers they have only been asked.
bool IsWhole(const LiveView& view) {
  return std::all_of(view.report.nodes.begin(), view.report.nodes.end(), [](const rendezvous::StatusLine& node) {
    return node.state != "running" || node.telemetry.has_value();
  });
}

int RunPlain(const TopRun& run) {
  boost::asio::io_context loop(1);
  Printer printer(run.flags, run.target, run.interval);
  int code = 0;
  std::string said;
  std::optional<TimePoint> began;
  TopEvents events;
  events.view = [&](const LiveView& view) {
    said.clear();
    const TimePoint now = MonotonicClock::now();
    if (!began) began = now;
    const bool finished = view.report.phase == "finished";
    if (run.flags.once && !finished && !IsWhole(view) && now - *began < kWholeLimit) return;
    if (finished) printer.MustPrint();
    if (printer.Print(view) && run.flags.once) loop.stop();
  };
  events.say = [&](const std::string& text) {
    if (std::exchange(said, text) != text) Say(0, text);
  };
  events.over = [&](const Status& status) {
    code = status.ok() ? 0 : Say(ExitCodeOfInquiry(status), Message(status));
    loop.stop();
  };
  const auto source = SourceOf(loop, run, std::move(events), [](const PodsByHost&) {});
  loop.run();
  return code;
}

// After the screen is gone, the last view stays as a table.
int RunOnTerminal(const TopRun& run) {
  boost::asio::io_context loop(1);
  int code = 0;
  Status end;
  std::string said;
  bool over = false;
  auto session = TopSession::Begin(loop, {.target = run.target, .name_space = run.flags.name_space}, run.job_folder,
                                   [&](int with) {
                                     code = with;
                                     loop.stop();
                                   });
  if (!session.ok()) return Say(kExitBadConfiguration, Message(session.status()));
  TopEvents events;
  events.view = [&](LiveView view) { (*session)->Show(std::move(view)); };
  events.say = [&](const std::string& text) { (*session)->Say(said = text); };
  events.over = [&](const Status& status) {
    over = true;
    end = status;
    loop.stop();
  };
  const auto source =
      SourceOf(loop, run, std::move(events), [&](const PodsByHost& pods) { (*session)->SetPods(pods); });
  loop.run();
  const std::shared_ptr<const LiveView> last = (*session)->view();
  session->reset();
  if (!over) return code;
  if (last) Printer(run.flags, run.target, run.interval).Print(*last);
  if (!end.ok()) return Say(ExitCodeOfInquiry(end), Message(end));
  if (!said.empty()) Say(0, said);
  return 0;
}

}  // namespace

int TopCommand(const Call& call) {
  Arguments arguments("Follow a run: its progress, its restarts, and what each rank does", "muster top");
  TopRun run;
  AddFlags(arguments, &run.flags);
  if (auto end = arguments.Parse(call)) return *end;

  run.job_folder = FolderOfJob(run.flags.target);
  if (!run.job_folder.empty()) {
    run.target = {.kind = TopTarget::Kind::kLocalJob, .name = run.flags.target};
  } else {
    auto target = ParseTopTarget(run.flags.target);
    if (!target.ok()) return Say(kExitUsage, Message(target.status()));
    run.target = *std::move(target);
  }
  if (!run.flags.name_space.empty() && !(run.target.in_cluster() && IsJobName(run.flags.name_space))) {
    return Say(kExitUsage,
               fmt::format("--namespace '{}': want a name, and a target in a cluster", run.flags.name_space));
  }
  for (const auto& [name, text, duration] : {std::tuple("--timeout", &run.flags.timeout, &run.timeout),
                                             std::tuple("--interval", &run.flags.interval, &run.interval)}) {
    auto parsed = ParseDuration(*text);
    if (!parsed.ok()) return Say(kExitUsage, fmt::format("{} '{}': {}", name, *text, Message(parsed.status())));
    if (*parsed <= Duration::zero()) return Say(kExitUsage, fmt::format("{} '{}': want more than 0", name, *text));
    *duration = *parsed;
  }
  auto credentials = net::ReadCredentials(run.flags.files);
  if (!credentials.ok()) return Say(kExitBadConfiguration, Message(credentials.status()));
  run.credentials = *std::move(credentials);
  auto http = net::ReadCredentials({.token = run.flags.http_token_file});
  if (!http.ok()) return Say(kExitBadConfiguration, fmt::format("--http-token-file: {}", Message(http.status())));
  run.http_token = http->token;
  const bool plain = run.flags.once || run.flags.json || !IsFullTerminal(Environment::OfProcess());
  return plain ? RunPlain(run) : RunOnTerminal(run);
}

}  // namespace muster::agent
