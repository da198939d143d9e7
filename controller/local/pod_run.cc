#include "controller/local/pod_run.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/clock.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "controller/local/job_logs.h"
#include "controller/local/pod_lifecycle.h"
#include "controller/local/process_tree.h"
#include "controller/local/sandbox.h"
#include "launcher/worker_group.h"

namespace muster::controller {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

constexpr size_t kMostMessage = 4096;  // bytes of a termination message

Status MakeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return absl::UnavailableError(fmt::format("{}: it cannot be made: {}", path, error.message()));
  return absl::OkStatus();
}

Status Prepare(const PodProgram& program, const std::string& folder) {
  MUSTER_RETURN_IF_ERROR(MakeFolder(folder + "/logs"));
  for (const PodFolder& one : program.folders) {
    if (!fs::exists(one.path)) MUSTER_RETURN_IF_ERROR(MakeFolder(one.path));
  }
  for (const PodFile& file : program.files) {
    MUSTER_RETURN_IF_ERROR(MakeFolder(fs::path(file.path).parent_path().string()));
    MUSTER_RETURN_IF_ERROR(ReplaceFile(file.path, file.text, {.mode = static_cast<mode_t>(file.mode)}));
  }
  return absl::OkStatus();
}

// What the container has written there; empty: nothing.
std::string MessageIn(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostMessage, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

}  // namespace

class PodRun::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(PodMeans means, PodProgram program, const PodPlace& place, PodView view, std::function<void()> changed)
      : means_(means),
        program_(std::move(program)),
        folder_(place.folder),
        view_(std::move(view)),
        changed_(std::move(changed)),
        cycle_(program_, place.address, WallNow()),
        groups_(cycle_.size()),
        graces_(cycle_.size()),
        timer_(means.loop),
        deadline_(means.loop) {}

  void Begin() {
    if (program_.deadline) {
      deadline_.expires_after(*program_.deadline);
      deadline_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        auto self = weak.lock();
        if (error || !self) return;
        self->cycle_.Stop("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
        self->Step();
        self->Tell();
      });
    }
    Step();
  }

  void Step() {
    PodLifecycle::Step step;
    do {  // a start may be what another container waits for
      step = cycle_.Next(WallNow());
      for (const size_t i : step.start) StartContainer(i);
      for (const size_t i : step.stop) AskToEnd(i);
    } while (!step.start.empty());
    if (step.again) WakeAt(*step.again);
  }

  void Stop() {
    cycle_.Stop();
    Step();
  }

  void Kill() {
    cycle_.Stop();
    for (const auto& group : groups_) {
      if (group) group->Stop(SIGKILL, Duration::zero());
    }
    Step();
  }

  void End() {
    timer_.cancel();
    deadline_.cancel();
    graces_.clear();
    groups_.clear();
    changed_ = [] {};
  }

  bool Signal(std::string_view name, int signal, const std::vector<std::string>& entries) {
    for (size_t i = 0; i < cycle_.size(); ++i) {
      if (cycle_.Program(i).name != name || !groups_[i]) continue;
      for (const pid_t command : Commands(i)) {
        const pid_t pid = entries.empty() ? command : FindBelow(command, entries);
        if (pid > 0 && kill(pid, signal) == 0) return true;
      }
    }
    return false;
  }

  bool over() const { return cycle_.over(); }
  Json Status(const Json& old) const { return cycle_.Status(old, WallNow()); }

 private:
  void StartContainer(size_t i) {
    const ContainerProgram& container = cycle_.Program(i);
    std::weak_ptr<Impl> weak = weak_from_this();
    launcher::WorkerGroupEvents events{.worker_exited = [](const launcher::ExitRecord&) {},
                                       .all_gone =
                                           [weak, i] {
                                             if (auto self = weak.lock()) self->Gone(i);
                                           }};
    groups_[i] = std::make_unique<launcher::WorkerGroup>(means_.loop, means_.reaper, means_.console, std::move(events));
    launcher::WorkerSpec spec;
    spec.argv = SandboxWords({.bwrap = means_.bwrap,
                              .hostname = program_.hostname,
                              .hosts = view_.hosts,
                              .mounts = container.mounts,
                              .working_directory = container.working_directory},
                             ListRealFolder);
    spec.argv.insert(spec.argv.end(), container.command.begin(), container.command.end());
    spec.environment = container.environment;
    const std::string log = NextLog(folder_ + "/logs", container.name);
    for (launcher::StreamSpec* stream : {&spec.output.out, &spec.output.err}) {
      stream->file = log;
      stream->prefix = view_.prefix;
      stream->filters = view_.filters;
      stream->filter_file = view_.filter_file;
    }
    const auto started = groups_[i]->Start({spec});
    if (!started.ok()) {
      groups_[i].reset();
      const int code = absl::IsNotFound(started) ? 127 : absl::IsPermissionDenied(started) ? 126 : 128;
      cycle_.Ended(i, {.exit_code = code, .reason = "ContainerCannotRun", .message = std::string(Message(started))},
                   WallNow());
    } else {
      cycle_.Started(i, WallNow());
    }
    Tell();
  }

  // bubblewrap waits for the command, which is its child.
  std::vector<pid_t> Commands(size_t i) const {
    std::vector<pid_t> commands;
    for (const int64_t bwrap : groups_[i]->pids()) {
      for (const pid_t command : ChildrenOf(static_cast<pid_t>(bwrap))) commands.push_back(command);
    }
    return commands;
  }

  // As the kubelet does: SIGTERM to the command alone, SIGKILL to all that is left after the grace.
  void AskToEnd(size_t i) {
    if (!groups_[i]) return;
    for (const pid_t command : Commands(i)) kill(command, SIGTERM);
    graces_[i] = std::make_unique<asio::steady_timer>(means_.loop, program_.grace);
    graces_[i]->async_wait([weak = weak_from_this(), i](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (!error && self && self->groups_[i]) self->groups_[i]->Stop(SIGKILL, Duration::zero());
    });
  }

  void Gone(size_t i) {
    graces_[i].reset();
    ContainerEnd end;
    const auto& records = groups_[i]->records();
    if (!records.empty()) {
      end.exit_code = records.front().exit_code;
      end.oom = records.front().oom_killed;
    }
    end.message = MessageIn(cycle_.Program(i).termination_message);
    cycle_.Ended(i, std::move(end), WallNow());
    // Not from inside its own callback.
    asio::post(means_.loop, [self = shared_from_this(), group = std::move(groups_[i])] { self->Step(); });
    Tell();
  }

  void WakeAt(WallTime when) {
    timer_.expires_after(std::max<Duration>(when - WallNow(), Duration::zero()));
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (!error && self) self->Step();
    });
  }

  void Tell() {
    asio::post(means_.loop, [self = shared_from_this()] { self->changed_(); });
  }

  const PodMeans means_;
  const PodProgram program_;
  const std::string folder_;
  const PodView view_;
  std::function<void()> changed_;
  PodLifecycle cycle_;
  std::vector<std::unique_ptr<launcher::WorkerGroup>> groups_;
  std::vector<std::unique_ptr<asio::steady_timer>> graces_;  // until SIGKILL
  asio::steady_timer timer_, deadline_;
};

PodRun::PodRun(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

PodRun::~PodRun() { impl_->End(); }

StatusOr<std::unique_ptr<PodRun>> PodRun::Start(PodMeans means, PodProgram program, const PodPlace& place, PodView view,
                                                std::function<void()> changed) {
  MUSTER_RETURN_IF_ERROR(Prepare(program, place.folder));
  auto impl = std::make_shared<Impl>(means, std::move(program), place, std::move(view), std::move(changed));
  impl->Begin();
  return std::unique_ptr<PodRun>(new PodRun(std::move(impl)));
}

void PodRun::Stop() { impl_->Stop(); }
void PodRun::Kill() { impl_->Kill(); }
bool PodRun::Signal(std::string_view name, int signal, const std::vector<std::string>& entries) {
  return impl_->Signal(name, signal, entries);
}
bool PodRun::over() const { return impl_->over(); }
Json PodRun::Status(const Json& old) const { return impl_->Status(old); }

}  // namespace muster::controller
