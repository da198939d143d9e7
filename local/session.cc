// SPDX-License-Identifier: Apache-2.0
#include "local/session.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/replace_file.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "base/version.h"
#include "controller/admission/validate_files.h"
#include "controller/api/lenient.h"
#include "controller/input_file.h"
#include "controller/plan/plan_files.h"
#include "local/builtin_runtimes.h"
#include "local/container/host_paths.h"
#include "local/end_table.h"
#include "local/inputs.h"
#include "local/live_line.h"
#include "local/network/isolation.h"
#include "local/overrides.h"
#include "local/pod/check.h"
#include "local/run.h"
#include "local/run_guard.h"
#include "local/run_recorder.h"
#include "local/state/background.h"
#include "local/state/job_folders.h"
#include "local/state/job_report.h"
#include "local/state/state_check.h"
#include "local/stop_request.h"
#include "local/verdict.h"

namespace muster::local {

using namespace controller;

namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

RunRecord FirstRecord(const LocalFlags& flags, const std::string& id) {
  RunRecord record{.id = id, .detached = flags.detach, .begun = WallNow()};
  for (const std::string& file : flags.files) {
    std::error_code error;
    record.files.push_back(file == "-" ? file : fs::absolute(file, error).string());
  }
  return record;
}

// Where the agent of the first node shows the whole job to a browser; empty: that node has not begun.
std::string PageOf(const std::vector<PodRecord>& pods) {
  const auto first = std::find_if(pods.begin(), pods.end(), [](const PodRecord& pod) {
    return pod.node_rank == 0 && !pod.address.empty() && !pod.ended;
  });
  return first == pods.end() ? "" : fmt::format("http://{}:{}/", first->address, kAgentHttpPort);
}

// `nohup` has SIGHUP ignored.
bool IsIgnored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Nobody here resumes a job.
Status CheckSuspend(const PlannedFiles& planned) {
  const bool of_train_job = !planned.jobs.empty() && planned.jobs[0].job.suspend;
  if (!of_train_job && (planned.pytorch_jobs.empty() || !planned.pytorch_jobs[0].job.suspend)) return absl::OkStatus();
  const char* field = of_train_job ? "spec.suspend" : "spec.runPolicy.suspend";
  return absl::InvalidArgumentError(fmt::format(
      "{0}: true: the job would never begin, since nothing here resumes it; run it with --set {0}=false", field));
}

// What the pods run with. Holds references to objects of Session::Follow.
struct RunPlace {
  const LocalFlags& flags;
  const TakenFolder& folder;
  const std::string& bwrap;  // empty: not installed
  const AgentFiles& agent_files;
};

class Session {
 public:
  StatusOr<int> Run(const LocalFlags& flags) {
    MUSTER_ASSIGN_OR_RETURN(std::vector<InputFile> files, ReadInputs(flags.files));
    const PlanOptions options{.version = std::string(Version())};
    MUSTER_RETURN_IF_ERROR(PutObjects(flags, files, &world_));
    for (const BuiltinRuntime& runtime : kBuiltinRuntimes) {
      files.push_back({.name = fmt::format("built-in runtime {}", runtime.name),
                       .text = std::string(runtime.text),
                       .is_own = false});
    }
    const auto edit = [&flags, this](FileObject* job) -> Status {
      GiveName(id_.substr(0, std::size(kSomeLetters) - 1), job);
      MUSTER_RETURN_IF_ERROR(Override(flags.overrides, &job->document.object));
      return job->kind == kPyTorchJobKind ? ValidatePyTorchJob(*job) : absl::OkStatus();
    };
    MUSTER_ASSIGN_OR_RETURN(
        const PlannedFiles planned,
        PlanFiles(files, options, {.edit = edit, .check = ValidateTrainJob, .beside = ObjectsOfPods()}));
    if (planned.jobs.size() + planned.pytorch_jobs.size() != 1) {
      return absl::InvalidArgumentError("the files have several jobs; give one at a time");
    }
    for (const std::string& remark : planned.remarks) PrintTo(stderr, "{}\n", remark);
    if (flags.dry_run) {
      PrintTo(stdout, "{}", ObjectsAsYaml(PlannedObjects(planned)));
      return 0;
    }
    MUSTER_RETURN_IF_ERROR(CheckPodCount(planned));
    MUSTER_RETURN_IF_ERROR(CheckSuspend(planned));
    if (planned.jobs.empty()) {
      MUSTER_ASSIGN_OR_RETURN(job_, BeginPyTorchJob(planned.pytorch_jobs[0], options, WallNow(), &world_));
    } else {
      MUSTER_ASSIGN_OR_RETURN(job_, BeginTrainJob(planned.jobs[0], options, WallNow(), &world_));
    }
    return Follow(flags, planned);
  }

 private:
  // Reports missing objects before the first pod starts.
  Status CheckObjects(const LocalFlags& flags, const PlannedFiles& planned, const LocalRunOptions& options,
                      bool own_root) {
    std::vector<GivenObject> given;
    const auto name_of = [](const std::string& text) { return text.substr(0, text.find('=')); };
    for (const std::string& text : flags.secrets) given.push_back({"--secret", "Secret", name_of(text)});
    for (const std::string& text : flags.config_maps) given.push_back({"--config-map", "ConfigMap", name_of(text)});
    const PodPlace place{.folder = options.folder + "/pods/check",
                         .claims = options.claims,
                         .own_root = own_root,
                         .entrypoints = options.entrypoints,
                         .images = options.images,
                         .environment = options.environment};
    const auto find = [this](std::string_view kind, std::string_view name) { return world_.Find(kind, name); };
    const auto fits = [](const PodProgram& program) -> Status {
      for (const HostPath& path : program.host_paths) MUSTER_RETURN_IF_ERROR(CheckHostPath(path));
      return absl::OkStatus();
    };
    MUSTER_ASSIGN_OR_RETURN(const std::vector<Json> objects, CreatedObjects(planned));
    const PodCheck check = CheckPods(objects, place, given, find, fits);
    for (const std::string& remark : check.remarks) PrintTo(stderr, "muster local: {}\n", remark);
    return check.status;
  }

  StatusOr<int> Follow(const LocalFlags& flags, const PlannedFiles& planned) {
    const Environment environment = Environment::OfProcess();
    const LocalPrograms programs = FindPrograms(environment);
    if (programs.muster.empty()) {
      return absl::FailedPreconditionError("muster is neither beside this binary nor on PATH");
    }
    MUSTER_ASSIGN_OR_RETURN(const std::string state, StateFolder(environment));
    MUSTER_ASSIGN_OR_RETURN(const TakenFolder taken, TakeJobFolder(state, job_->State().name));
    const AgentFiles agent_files(state, programs.muster);
    MUSTER_ASSIGN_OR_RETURN(LocalRunOptions options,
                            OptionsOf(flags, environment, programs, state, taken.path, agent_files.binary()));
    options.id = id_;
    options.nodes = NodeNumbers(planned);
    for (const Drill& drill : options.drills) MUSTER_RETURN_IF_ERROR(options.nodes.Check(drill));
    MUSTER_RETURN_IF_ERROR(CheckObjects(flags, planned, options, !programs.bwrap.empty()));
    MUSTER_ASSIGN_OR_RETURN(mode_, ParseNetworkMode(flags.network));
    const RunPlace place{flags, taken, programs.bwrap, agent_files};
    if (!flags.detach) return RunToReport(place, std::move(options), [] {});
    MUSTER_ASSIGN_OR_RETURN(Background background, Background::Fork(OutputPath(taken.path)));
    if (!background.is_new()) {
      MUSTER_RETURN_IF_ERROR(background.Await());
      return SayDetached(job_->State().name, background.pid());
    }
    auto code = RunToReport(place, std::move(options), [&] { background.ReportStart(absl::OkStatus()); });
    if (!code.ok()) background.ReportStart(code.status());
    return code;
  }

  static int SayDetached(const std::string& job, pid_t pid) {
    PrintTo(stderr,
            "muster local: {} runs in the background, as process {}\n"
            "  muster logs -f {}   shows its output\n"
            "  muster ps        {}   shows its state\n"
            "  muster stop {}      ends it\n",
            job, pid, job, std::string(job.size(), ' '), job);
    return 0;
  }

  // Runs the job from the first pod to the report. Calls `begun` once the job runs and run.json is written.
  StatusOr<int> RunToReport(const RunPlace& place, LocalRunOptions options, const std::function<void()>& begun) {
    auto code = RunPods(place, std::move(options), begun);
    // By now only the run's folder is left, and signals end this process as usual.
    if (code.ok()) SayReport(place.agent_files.binary(), place.folder.path);
    return code;
  }

  StatusOr<int> RunPods(const RunPlace& place, LocalRunOptions options, const std::function<void()>& begun) {
    const std::string& folder = place.folder.path;
    MUSTER_ASSIGN_OR_RETURN(const Descriptor pods, MakePodsFolder(folder));
    MUSTER_ASSIGN_OR_RETURN(const auto guard, RunGuard::Begin(options.id, place.flags.keep ? -1 : pods.get()));
    MUSTER_ASSIGN_OR_RETURN(const Isolation isolation, Isolate(mode_, place.bwrap));
    for (const Drill& drill : options.drills) MUSTER_RETURN_IF_ERROR(CheckLinks(drill, isolation.why_shared));
    PrintTo(stderr, "muster local: {}\n", isolation.said);
    RaiseOpenFiles();
    asio::io_context loop;
    launcher::Reaper reaper(loop);
    launcher::Console console(loop);
    console.RouteLog();
    const auto say = [&console](const std::string& text) {
      console.Write(launcher::Console::Stream::kErr, fmt::format("muster local: {}\n", text));
    };
    RunRecorder recorder(folder, FirstRecord(place.flags, options.id), say);
    if (place.folder.lost)
      say(fmt::format("the previous run was killed; its logs are in {}/previous, the rest is removed", folder));
    asio::signal_set signals(loop, SIGINT, SIGTERM, SIGUSR1);
    if (!IsIgnored(SIGHUP)) signals.add(SIGHUP);
    StopRequest request;
    LiveLine live(loop, console);
    bool shown = false;  // where the job can be looked at
    const PodContext context{.loop = loop,
                             .reaper = reaper,
                             .console = console,
                             .bwrap = isolation.bwrap,
                             .network = isolation.network.get(),
                             .agent_files = &place.agent_files,
                             .own_pids = isolation.own_pids,
                             .guard = guard->pid()};
    LocalRun run(context, &world_, job_.get(), std::move(options),
                 {.event = [&say](const EventText& event) { say(fmt::format("{}: {}", event.reason, event.message)); },
                  .trouble = say,
                  .ignored = [&say](const std::string& field) { say("not honoured here: " + field); },
                  .drill = [&say](const std::string& what) { say("drill " + what); },
                  .lines = live.lines(),
                  .changed =
                      [&] {
                        recorder.Note(job_->State(), run);
                        if (const std::string page = shown ? "" : PageOf(run.pods()); !page.empty()) {
                          shown = true;
                          say(fmt::format("{} shows the job, and so does `muster top {}`", page, job_->State().name));
                        }
                        live.Show();
                      },
                  .over =
                      [&] {
                        signals.cancel();
                        live.End();
                        loop.stop();
                      }});
    AwaitSignals(&signals, &request, &run, say);
    MUSTER_RETURN_IF_ERROR(run.Begin());
    recorder.Note(job_->State(), run);
    live.Begin([&](const StatusView& view) { return view.Facts(job_->State(), run.pods()); });
    begun();
    loop.run();
    console.Drain(std::chrono::seconds(5));
    PrintTo(stderr, "{}", EndTable(run.ends()));
    const RunVerdict verdict = VerdictOn(
        {.job = job_->State(), .signal = request.signal(), .refused = run.refused(), .missed = run.MissedDrills()});
    for (const std::string& line : verdict.lines) PrintTo(stderr, "muster local: {}\n", line);
    recorder.End(job_->State(), run, verdict, WallNow());
    if (!place.flags.keep) RemoveVolumes(folder);
    return verdict.exit_code;
  }

  static void AwaitSignals(asio::signal_set* signals, StopRequest* request, LocalRun* run,
                           const std::function<void(const std::string&)>& say) {
    signals->async_wait([=](const boost::system::error_code& error, int number) {
      if (error) return;
      switch (request->Take(number)) {
        case StopRequest::Answer::kNothing:
          break;
        case StopRequest::Answer::kStop:
          say(fmt::format("{}: the pods are stopped, and have their grace period to end; a second {} kills them",
                          SignalName(number), number == SIGINT ? "Ctrl-C" : "SIGTERM"));
          run->Stop();
          break;
        case StopRequest::Answer::kKill:
          say("the pods are killed");
          run->Kill();
          break;
      }
      AwaitSignals(signals, request, run, say);
    });
  }

  static void SayReport(const std::string& muster, const std::string& folder) {
    const auto page = WriteJobReport(muster, folder);
    if (absl::IsNotFound(page.status())) return;
    PrintTo(stderr, "muster local: {}\n",
            page.ok() ? "report: " + *page : fmt::format("the report cannot be written: {}", Message(page.status())));
  }

  const std::string id_ = RandomName();  // of the run
  World world_{id_};
  std::unique_ptr<LocalJob> job_;
  NetworkMode mode_ = NetworkMode::kAuto;
};

}  // namespace

StatusOr<int> RunLocally(const LocalFlags& flags) { return Session().Run(flags); }

}  // namespace muster::local
