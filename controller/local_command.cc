#include "controller/local_command.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/exit_codes.h"
#include "base/print.h"
#include "base/quoted.h"
#include "base/version.h"
#include "controller/admission/validate_files.h"
#include "controller/api/lenient.h"
#include "controller/input_file.h"
#include "controller/local/builtin_runtimes.h"
#include "controller/local/local_run.h"
#include "controller/plan/plan_files.h"

namespace muster::controller {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

struct Flags {
  std::vector<std::string> files;
};

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

StatusOr<std::string> StateFolder() {
  std::string folder = Variable("XDG_STATE_HOME");
  if (folder.empty()) {
    const std::string home = Variable("HOME");
    if (home.empty()) {
      return absl::FailedPreconditionError("neither XDG_STATE_HOME nor HOME is set: set one, for logs and volumes");
    }
    folder = home + "/.local/state";
  }
  if (folder[0] != '/') {
    return absl::FailedPreconditionError(fmt::format("XDG_STATE_HOME: {} is no absolute path", Quoted(folder)));
  }
  return folder + "/muster";
}

// Beside this binary, else on PATH; empty: nowhere.
std::string Program(const std::string& name) {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path() / name;
  if (access(own.c_str(), X_OK) == 0) return own.string();
  const std::string path = Variable("PATH");
  for (const std::string_view folder : Split(path, ':')) {
    const std::string found = fmt::format("{}/{}", folder, name);
    if (!folder.empty() && access(found.c_str(), X_OK) == 0) return found;
  }
  return "";
}

// The job's folder, empty, and locked as long as the descriptor is open.
StatusOr<std::string> TakeFolder(const std::string& state, const std::string& job, int* lock) {
  const std::string folder = fmt::format("{}/jobs/{}", state, job);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return absl::UnavailableError(fmt::format("{}: it cannot be made: {}", folder, error.message()));
  *lock = open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (*lock < 0) return ErrnoStatus(errno, folder + "/lock");
  if (flock(*lock, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        fmt::format("a job {} runs here already; wait for its end, or give this one another name", Quoted(job)));
  }
  fs::remove_all(folder + "/pods", error);
  return folder;
}

// ConfigMaps, Secrets and claims of the files.
Status PutObjects(const std::vector<InputFile>& files, World* world) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<FileObject> objects, ReadFileObjects(files));
  for (const FileObject& object : objects) {
    if (object.kind != "ConfigMap" && object.kind != "Secret" && object.kind != "PersistentVolumeClaim") continue;
    const auto made = world->Create(object.document.object, WallNow());
    if (!made.ok()) return object.Wrong(Message(made.status()));
  }
  return absl::OkStatus();
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
    MUSTER_RETURN_IF_ERROR(ValidatePyTorchJobs(files));
    MUSTER_RETURN_IF_ERROR(PutObjects(files, &world_));
    for (const BuiltinRuntime& runtime : kBuiltinRuntimes) {
      files.push_back({fmt::format("built-in runtime {}", runtime.name), std::string(runtime.text)});
    }
    MUSTER_ASSIGN_OR_RETURN(const PlannedFiles planned, PlanFiles(files, options));
    if (planned.jobs.size() + planned.pytorch_jobs.size() != 1) {
      return absl::InvalidArgumentError("the files have several jobs; give one at a time");
    }
    for (const std::string& remark : planned.remarks) PrintTo(stderr, "{}\n", remark);
    if (planned.jobs.empty()) {
      MUSTER_ASSIGN_OR_RETURN(job_, BeginPyTorchJob(planned.pytorch_jobs[0], options, WallNow(), &world_));
    } else {
      MUSTER_ASSIGN_OR_RETURN(job_, BeginTrainJob(planned.jobs[0], options, WallNow(), &world_));
    }
    return Follow();
  }

 private:
  StatusOr<int> Follow() {
    const std::string bwrap = Program("bwrap"), muster = Program("muster"), initializer = Program("muster-initializer");
    if (bwrap.empty()) {
      return absl::FailedPreconditionError(
          "bwrap is not on PATH: install bubblewrap (Debian's package bubblewrap); it gives each pod its volumes");
    }
    if (muster.empty()) return absl::FailedPreconditionError("muster is neither beside this binary nor on PATH");
    MUSTER_ASSIGN_OR_RETURN(const std::string state, StateFolder());
    int lock = -1;
    MUSTER_ASSIGN_OR_RETURN(const std::string folder, TakeFolder(state, job_->State().name, &lock));
    LocalRunOptions options{.folder = folder, .claims = state + "/claims"};
    options.entrypoints["muster"] = {muster};
    if (!initializer.empty()) options.entrypoints["muster-initializer"] = {initializer};
    for (const char* name : {"PATH", "HOME", "LANG", "TERM"}) {
      if (const std::string value = Variable(name); !value.empty()) {
        options.environment.push_back(fmt::format("{}={}", name, value));
      }
    }
    asio::io_context loop;
    launcher::Reaper reaper(loop);
    launcher::Console console(loop);
    console.CarryLog();
    const auto say = [&console](const std::string& text) {
      console.Write(launcher::Console::Stream::kErr, fmt::format("muster local: {}\n", text));
    };
    asio::signal_set signals(loop, SIGINT, SIGTERM);
    int signal = 0;
    bool over = false;
    LocalRun run({loop, reaper, console, bwrap}, &world_, job_.get(), std::move(options),
                 {.event = [&say](const EventText& event) { say(fmt::format("{}: {}", event.reason, event.message)); },
                  .trouble = say,
                  .ignored = [&say](const std::string& field) { say("not honoured here: " + field); },
                  .over =
                      [&] {
                        over = true;
                        signals.cancel();
                        loop.stop();
                      }});
    AwaitSignals(&signals, &signal, &run);
    run.Begin();
    loop.run();
    console.Drain(std::chrono::seconds(5));
    close(lock);
    return signal != 0 ? 128 + signal : End();
  }

  void AwaitSignals(asio::signal_set* signals, int* signal, LocalRun* run) {
    signals->async_wait([this, signals, signal, run](const boost::system::error_code& error, int number) {
      if (error) return;
      if (*signal == 0) *signal = number;
      run->Stop();
      AwaitSignals(signals, signal, run);
    });
  }

  int End() {
    const LocalJobState state = job_->State();
    PrintTo(stderr, "muster local: {} {}: {}{}{}\n", state.kind, state.name, state.state,
            state.message.empty() ? "" : ": ", state.message);
    if (state.succeeded) return 0;
    const int code = state.failures.empty() ? 1 : state.failures.back().exit_code;
    return code == 0 ? 1 : code;
  }

  World world_;
  std::unique_ptr<LocalJob> job_;
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
  app->callback([flags, run] { *run = [flags] { return Run(*flags); }; });
}

}  // namespace muster::controller
