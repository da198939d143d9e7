#include "controller/local_command.h"

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/quoted.h"
#include "base/settings_file.h"
#include "base/state_folder.h"
#include "base/version.h"
#include "controller/admission/validate_files.h"
#include "controller/api/lenient.h"
#include "controller/input_file.h"
#include "controller/local/background.h"
#include "controller/local/builtin_runtimes.h"
#include "controller/local/image_archive.h"
#include "controller/local/isolation.h"
#include "controller/local/job_folders.h"
#include "controller/local/job_report.h"
#include "controller/local/live_line.h"
#include "controller/local/local_run.h"
#include "controller/local/overrides.h"
#include "controller/local/pod_check.h"
#include "controller/local/run_recorder.h"
#include "controller/local/state_check.h"
#include "controller/plan/plan_files.h"

namespace muster::controller {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

struct Flags {
  std::vector<std::string> files;
  Overrides overrides;
  std::string work_folder;                        // empty: the current folder
  std::vector<std::string> secrets, config_maps;  // NAME=FOLDER
  std::vector<std::string> image_roots;           // [IMAGE=]FOLDER
  std::vector<std::string> image_files;           // [IMAGE=]FILE
  std::vector<std::string> drills;
  std::string network = "auto";
  bool dry_run = false;
  bool keep = false, detach = false;
};

RunRecord FirstRecord(const Flags& flags) {
  RunRecord record{.detached = flags.detach, .begun = WallNow()};
  for (const std::string& file : flags.files) {
    std::error_code error;
    record.files.push_back(file == "-" ? file : fs::absolute(file, error).string());
  }
  return record;
}

// Makes the object of --secret or --config-map: each file of the folder is a key.
StatusOr<Json> ObjectOfFolder(const char* kind, const char* flag, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(fmt::format("{} {}: want NAME=FOLDER", flag, Quoted(text)));
  }
  const std::string folder = text.substr(equals + 1);
  Json data = Json::object();
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!it->is_regular_file()) continue;
    const auto content = ReadSettingsFile(it->path().string());
    if (!content.ok()) return Annotate(content.status(), flag);
    data[it->path().filename().string()] = *content;
  }
  if (error)
    return absl::InvalidArgumentError(fmt::format("{} {}: {}: {}", flag, Quoted(text), folder, error.message()));
  return Json{{"apiVersion", "v1"},
              {"kind", kind},
              {"metadata", {{"name", text.substr(0, equals)}}},
              {std::string_view(kind) == "Secret" ? "stringData" : "data", std::move(data)}};
}

// The path of a program: beside this binary, else on PATH; empty: not found.
std::string Program(const std::string& name, const Environment& environment) {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path() / name;
  if (access(own.c_str(), X_OK) == 0) return own.string();
  const std::string path = environment.Get("PATH").value_or("");
  for (const std::string_view folder : Split(path, ':')) {
    const std::string found = fmt::format("{}/{}", folder, name);
    if (!folder.empty() && access(found.c_str(), X_OK) == 0) return found;
  }
  return "";
}

// Objects that pods use.
const std::set<std::string_view> kObjects = {"ConfigMap", "Secret", "PersistentVolumeClaim"};

// Creates the objects of the flags, then those of the files.
Status PutObjects(const Flags& flags, const std::vector<InputFile>& files, World* world) {
  for (const std::string& text : flags.secrets) {
    MUSTER_ASSIGN_OR_RETURN(Json object, ObjectOfFolder("Secret", "--secret", text));
    MUSTER_RETURN_IF_ERROR(world->Create(std::move(object), WallNow()).status());
  }
  for (const std::string& text : flags.config_maps) {
    MUSTER_ASSIGN_OR_RETURN(Json object, ObjectOfFolder("ConfigMap", "--config-map", text));
    MUSTER_RETURN_IF_ERROR(world->Create(std::move(object), WallNow()).status());
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<FileObject> objects, ReadFileObjects(files));
  for (const FileObject& object : objects) {
    if (!kObjects.contains(object.kind)) continue;
    const auto made = world->Create(object.document.object, WallNow());
    if (!made.ok()) return object.Wrong(Message(made.status()));
  }
  return absl::OkStatus();
}

// A line for each host: the ends of its pods, one after the other.
std::string TableOf(const std::vector<PodEnd>& ends) {
  std::map<std::string, std::vector<const PodEnd*>> hosts;
  size_t width = 4;
  for (const PodEnd& end : ends) {
    hosts[end.host].push_back(&end);
    width = std::max(width, end.host.size());
  }
  std::string table;
  for (const auto& [host, its_ends] : hosts) {
    std::vector<std::string> texts;
    for (const PodEnd* end : its_ends) {
      texts.push_back(fmt::format("{} after {:.2f} s", end->exit_code == 0 ? "success" : DescribeExit(end->exit_code),
                                  std::chrono::duration<double>(end->lived).count()));
    }
    table += fmt::format("{:<{}}  {}\n", host, width, Join(texts, ", then "));
  }
  return table;
}

int Failed(const Status& why) {
  PrintTo(stderr, "muster local: {}\n", Message(why));
  return kExitBadConfiguration;
}

class Session {
 public:
  StatusOr<int> Run(const Flags& flags) {
    MUSTER_ASSIGN_OR_RETURN(std::vector<InputFile> files, ReadInputs(flags.files));
    const PlanOptions options{.version = std::string(Version())};
    MUSTER_RETURN_IF_ERROR(PutObjects(flags, files, &world_));
    for (const BuiltinRuntime& runtime : kBuiltinRuntimes) {
      files.push_back({.name = fmt::format("built-in runtime {}", runtime.name),
                       .text = std::string(runtime.text),
                       .is_own = false});
    }
    const auto edit = [&flags](FileObject* job) -> Status {
      MUSTER_RETURN_IF_ERROR(Override(flags.overrides, &job->document.object));
      return job->kind == kPyTorchJobKind ? ValidatePyTorchJob(*job) : absl::OkStatus();
    };
    MUSTER_ASSIGN_OR_RETURN(const PlannedFiles planned, PlanFiles(files, options, edit, kObjects));
    if (planned.jobs.size() + planned.pytorch_jobs.size() != 1) {
      return absl::InvalidArgumentError("the files have several jobs; give one at a time");
    }
    for (const std::string& remark : planned.remarks) PrintTo(stderr, "{}\n", remark);
    if (flags.dry_run) {
      PrintTo(stdout, "{}", ObjectsAsYaml(PlannedObjects(planned)));
      return 0;
    }
    MUSTER_RETURN_IF_ERROR(CheckPodCount(planned));
    if (planned.jobs.empty()) {
      MUSTER_ASSIGN_OR_RETURN(job_, BeginPyTorchJob(planned.pytorch_jobs[0], options, WallNow(), &world_));
    } else {
      MUSTER_ASSIGN_OR_RETURN(job_, BeginTrainJob(planned.jobs[0], options, WallNow(), &world_));
    }
    return Follow(flags, planned);
  }

 private:
  // Reports missing objects before the first pod starts.
  Status CheckObjects(const Flags& flags, const PlannedFiles& planned, const LocalRunOptions& options, bool own_root) {
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
    const PodCheck check = CheckPods(PlannedObjects(planned), place, given, find);
    for (const std::string& remark : check.remarks) PrintTo(stderr, "muster local: {}\n", remark);
    return check.status;
  }

  StatusOr<int> Follow(const Flags& flags, const PlannedFiles& planned) {
    const Environment environment = Environment::OfProcess();
    const std::string bwrap = Program("bwrap", environment), muster = Program("muster", environment),
                      initializer = Program("muster-initializer", environment);
    if (muster.empty()) return absl::FailedPreconditionError("muster is neither beside this binary nor on PATH");
    MUSTER_ASSIGN_OR_RETURN(const std::string state, StateFolder(environment));
    MUSTER_ASSIGN_OR_RETURN(const TakenFolder taken, TakeJobFolder(state, job_->State().name));
    LocalRunOptions options{.folder = taken.path, .claims = state + "/claims"};
    MUSTER_ASSIGN_OR_RETURN(options.work_folder, WorkFolder(flags.work_folder));
    if (!flags.work_folder.empty()) options.shown_folder = options.work_folder;
    for (const std::string& text : flags.image_roots) {
      const ImageFlag flag = ReadImageFlag(text);
      MUSTER_ASSIGN_OR_RETURN(options.images[flag.image], ReadImageRoot(flag.path));
    }
    for (const std::string& text : flags.image_files) {
      const ImageFlag flag = ReadImageFlag(text);
      const auto tell = [](const std::string& what) { PrintTo(stderr, "muster local: --oci {}\n", what); };
      auto root = UnpackImage(flag.path, state + "/images", tell);
      if (!root.ok()) return Annotate(root.status(), "--oci");
      options.images[flag.image] = *std::move(root);
    }
    const AgentFiles agent_files(state, muster);
    options.entrypoints["muster"] = {agent_files.binary()};
    if (!initializer.empty()) options.entrypoints["muster-initializer"] = {initializer};
    for (const char* name : {"PATH", "HOME", "LANG", "TERM"}) {
      const std::string value = environment.Get(name).value_or("");
      if (!value.empty()) options.environment.push_back(fmt::format("{}={}", name, value));
    }
    MUSTER_RETURN_IF_ERROR(CheckObjects(flags, planned, options, !bwrap.empty()));
    for (const std::string& text : flags.drills) {
      MUSTER_ASSIGN_OR_RETURN(Drill drill, ParseDrill(text));
      options.drills.push_back(std::move(drill));
    }
    MUSTER_ASSIGN_OR_RETURN(mode_, ParseNetworkMode(flags.network));
    if (!flags.detach) return Carry(flags, taken, bwrap, agent_files, std::move(options), [] {});
    MUSTER_ASSIGN_OR_RETURN(Background background, Background::Fork(OutputPath(taken.path)));
    if (!background.is_new()) {
      MUSTER_RETURN_IF_ERROR(background.Await());
      return TellDetached(job_->State().name, background.pid());
    }
    const auto code =
        Carry(flags, taken, bwrap, agent_files, std::move(options), [&] { background.Tell(absl::OkStatus()); });
    if (!code.ok()) background.Tell(code.status());
    return code;
  }

  static int TellDetached(const std::string& job, pid_t pid) {
    PrintTo(stderr,
            "muster local: {} runs in the background, as process {}\n"
            "  muster logs -f {}   shows what it writes\n"
            "  muster ps        {}   shows what becomes of it\n"
            "  muster stop {}      ends it\n",
            job, pid, job, std::string(job.size(), ' '), job);
    return 0;
  }

  // Runs the job from the first pod to the report. Calls `begun` once the job runs and run.json is written.
  StatusOr<int> Carry(const Flags& flags, const TakenFolder& taken, const std::string& bwrap,
                      const AgentFiles& agent_files, LocalRunOptions options, const std::function<void()>& begun) {
    const auto code = CarryPods(flags, taken, bwrap, agent_files, std::move(options), begun);
    // By now only the run's folder is left, and signals end this process as usual.
    if (code.ok()) TellReport(agent_files.binary(), taken.path);
    return code;
  }

  StatusOr<int> CarryPods(const Flags& flags, const TakenFolder& taken, const std::string& bwrap,
                          const AgentFiles& agent_files, LocalRunOptions options, const std::function<void()>& begun) {
    MUSTER_ASSIGN_OR_RETURN(const Isolation isolation, Isolate(mode_, bwrap));
    PrintTo(stderr, "muster local: {}\n", isolation.said);
    RaiseOpenFiles();
    asio::io_context loop;
    launcher::Reaper reaper(loop);
    launcher::Console console(loop);
    console.CarryLog();
    const auto say = [&console](const std::string& text) {
      console.Write(launcher::Console::Stream::kErr, fmt::format("muster local: {}\n", text));
    };
    RunRecorder recorder(taken.path, FirstRecord(flags), say);
    if (taken.lost)
      say("the run before was killed: what it left is removed, its logs are in " + taken.path + "/previous");
    asio::signal_set signals(loop, SIGINT, SIGTERM);
    int signal = 0;
    LiveLine live(loop, console);
    const PodMeans means{.loop = loop,
                         .reaper = reaper,
                         .console = console,
                         .bwrap = isolation.bwrap,
                         .network = isolation.network.get(),
                         .agent_files = &agent_files,
                         .own_pids = isolation.own_pids};
    LocalRun run(means, &world_, job_.get(), std::move(options),
                 {.event = [&say](const EventText& event) { say(fmt::format("{}: {}", event.reason, event.message)); },
                  .trouble = say,
                  .ignored = [&say](const std::string& field) { say("not honoured here: " + field); },
                  .drill = [&say](const std::string& what) { say("drill " + what); },
                  .lines = live.lines(),
                  .changed =
                      [&] {
                        recorder.Note(job_->State(), run.pods());
                        live.Show();
                      },
                  .over =
                      [&] {
                        signals.cancel();
                        live.End();
                        loop.stop();
                      }});
    AwaitSignals(&signals, &signal, &run);
    MUSTER_RETURN_IF_ERROR(run.Begin());
    recorder.Note(job_->State(), {});
    live.Begin([&](const StatusView& view) { return view.Facts(job_->State(), run.pods()); });
    begun();
    loop.run();
    console.Drain(std::chrono::seconds(5));
    PrintTo(stderr, "{}", TableOf(run.ends()));
    const int code = signal != 0 ? 128 + signal : End();
    recorder.End(job_->State(), run.pods(), code, WallNow());
    if (!flags.keep) RemoveVolumes(taken.path);
    return code;
  }

  void AwaitSignals(asio::signal_set* signals, int* signal, LocalRun* run) {
    signals->async_wait([this, signals, signal, run](const boost::system::error_code& error, int number) {
      if (error) return;
      if (*signal == 0) *signal = number;
      run->Stop();
      AwaitSignals(signals, signal, run);
    });
  }

  static void TellReport(const std::string& muster, const std::string& folder) {
    const auto page = WriteJobReport(muster, folder);
    if (absl::IsNotFound(page.status())) return;
    PrintTo(stderr, "muster local: {}\n",
            page.ok() ? "report: " + *page : fmt::format("there is no report: {}", Message(page.status())));
  }

  int End() {
    const LocalJobState state = job_->State();
    const std::string restarts =
        state.restarts == 0 ? "" : fmt::format(", {} restart{}", state.restarts, state.restarts == 1 ? "" : "s");
    PrintTo(stderr, "muster local: {} {}: {}{}{}{}\n", state.kind, state.name, state.state, restarts,
            state.message.empty() ? "" : ": ", state.message);
    if (state.succeeded) return 0;
    const int code = state.failures.empty() ? 1 : state.failures.back().exit_code;
    return code == 0 ? 1 : code;
  }

  World world_;
  std::unique_ptr<LocalJob> job_;
  NetworkMode mode_ = NetworkMode::kAuto;
};

int Run(const Flags& flags) {
  const auto code = Session().Run(flags);
  return code.ok() ? *code : Failed(code.status());
}

}  // namespace

void AddLocalFlags(CLI::App* app, std::function<int()>* run) {
  auto flags = std::make_shared<Flags>();
  app->add_option("-f,--filename", flags->files,
                  "a file with a TrainJob or a PyTorchJob, its runtime, ConfigMaps and Secrets; YAML or JSON; -: stdin")
      ->required()
      ->take_all();
  app->add_option("--nodes", flags->overrides.nodes, "so many nodes, whatever the job says");
  app->add_option("--procs", flags->overrides.processes, "so many processes of torchrun on a node");
  app->add_option("--env", flags->overrides.env, "NAME=VALUE, a variable of the trainer's container");
  app->add_option("--set", flags->overrides.sets,
                  "PATH=VALUE, a field of the job, as in spec.trainer.args='[--lr, 0.1]'");
  app->add_option("--workdir", flags->work_folder,
                  "where containers without a workingDir run; else the current folder");
  app->add_option("--secret", flags->secrets, "NAME=FOLDER, a Secret: each file of the folder is a key");
  app->add_option("--config-map", flags->config_maps, "NAME=FOLDER, a ConfigMap: each file of the folder is a key");
  app->add_option(
      "--image-root", flags->image_roots,
      "[IMAGE=]FOLDER, an unpacked image: its containers, or all, see that folder as their root, read-only");
  app->add_option("--oci", flags->image_files,
                  "[IMAGE=]FILE, an image as `docker save` or an OCI layout has it: the same, unpacked once, with its "
                  "Entrypoint, Cmd, Env and WorkingDir");
  app->add_option(
      "--kill", flags->drills,
      "TARGET:NUMBER[:SIGNAL|:exit=CODE|:cut|:mend]@WHEN, a fault on purpose: node:1@30s, rank:3@\"epoch 4\" (once "
      "a line of output has that text), rank:0:STOP@5s, rank:1:exit=3@5s, node:1:cut@5s");
  app->add_option("--network", flags->network,
                  "private: each host has its own (needs root); shared: this machine's; auto, the default: private "
                  "where it can be had");
  app->add_flag("--detach", flags->detach,
                "go on in the background once the job runs; `muster logs JOB` has its output");
  app->add_flag("--keep", flags->keep,
                "leave the pods' volumes where they are after the end, until the job's next start");
  app->add_flag("--dry-run", flags->dry_run, "print what would run, as `muster-controller plan` does");
  app->callback([flags, run] { *run = [flags] { return Run(*flags); }; });
}

}  // namespace muster::controller
