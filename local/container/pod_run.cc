// SPDX-License-Identifier: Apache-2.0
#include "local/container/pod_run.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/attach.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/exit_codes.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "controller/plan/agent.h"
#include "launcher/worker_group.h"
#include "local/container/enter_container.h"
#include "local/container/forced_exit.h"
#include "local/container/host_paths.h"
#include "local/container/probe_run.h"
#include "local/container/sandbox.h"
#include "local/pod/lifecycle.h"
#include "local/state/job_logs.h"

namespace muster::local {

using namespace controller;

namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

constexpr int kMostTries = 5;          // to set up a container's sandbox
constexpr size_t kMostMessage = 4096;  // bytes of a termination message

Status MakeFolder(const std::string& path, bool is_private = false) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && is_private) fs::permissions(path, fs::perms::owner_all, error);
  if (error) return absl::UnavailableError(fmt::format("{}: it cannot be made: {}", path, error.message()));
  return absl::OkStatus();
}

Status Prepare(const PodProgram& program, const std::string& folder, const AgentFiles* agent_files) {
  // The replacement of a pod may have the same name. It must not see the old pod's volumes.
  std::error_code error;
  fs::remove_all(folder + "/volumes", error);
  if (error)
    return absl::UnavailableError(fmt::format("{}/volumes: it cannot be removed: {}", folder, error.message()));
  MUSTER_RETURN_IF_ERROR(MakeFolder(folder + "/logs"));
  for (const PodFolder& one : program.folders) {
    if (!fs::exists(one.path, error)) MUSTER_RETURN_IF_ERROR(MakeFolder(one.path, one.is_private));
    if (one.of_agent && agent_files != nullptr) agent_files->PutInto(one.path);
  }
  for (const HostPath& path : program.host_paths) MUSTER_RETURN_IF_ERROR(MakeHostPath(path));
  for (const PodFile& file : program.files) {
    MUSTER_RETURN_IF_ERROR(MakeFolder(fs::path(file.path).parent_path().string()));
    MUSTER_RETURN_IF_ERROR(ReplaceFile(file.path, file.text, {.mode = static_cast<mode_t>(file.mode)}));
  }
  return absl::OkStatus();
}

// Why bubblewrap has failed before it started the command: for example, a file system that it was about to mount has
// been unmounted meanwhile. Empty: it has started the command.
std::string SandboxTrouble(const launcher::ExitRecord& record) {
  const bool is_its_own =
      record.exit_code == 1 && !record.stderr_tail.empty() && record.stderr_tail.back().starts_with("bwrap: ");
  return is_its_own ? record.stderr_tail.back() : "";
}

// The termination message in the file; empty: the container has written none.
std::string MessageIn(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostMessage, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

bool HasProbes(const ContainerProgram& container) {
  return container.startup || container.liveness || container.readiness;
}

}  // namespace

class PodRun::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(const PodContext& context, PodProgram program, const PodPlace& place, PodView view,
       std::function<void()> changed)
      : context_(context),
        program_(std::move(program)),
        folder_(place.folder),
        address_(place.address),
        view_(std::move(view)),
        changed_(std::move(changed)),
        cycle_(program_, place.address, WallNow()),
        runs_(cycle_.size()),
        timer_(context.loop),
        deadline_(context.loop) {}

  void Begin() {
    if (program_.deadline) {
      deadline_.expires_after(*program_.deadline);
      deadline_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        auto self = weak.lock();
        if (error || !self) return;
        self->cycle_.Stop("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
        self->Step();
        self->PostChanged();
      });
    }
    Step();
  }

  void Step() {
    PodLifecycle::Step step;
    do {  // another container may wait for a start of this step
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
    for (const ContainerRun& run : runs_) {
      if (run.group) run.group->Stop(SIGKILL, Duration::zero());
    }
    Step();
  }

  void End() {
    timer_.cancel();
    deadline_.cancel();
    runs_.clear();
    changed_ = [] {};
  }

  bool Signal(std::string_view name, int signal, const Sought& sought) {
    const pid_t pid = Find(name, sought);
    return pid > 0 && kill(pid, signal) == 0;
  }

  absl::Status EndWith(std::string_view name, int code, const Sought& sought, std::function<void(absl::Status)> done) {
    const pid_t pid = Find(name, sought);
    if (pid <= 0) return absl::NotFoundError("there is no such process");
    return ForceExit(context_.reaper, pid, code, std::move(done));
  }

  bool over() const { return cycle_.over(); }
  Json Status(const Json& old) const { return cycle_.Status(old, WallNow()); }

 private:
  struct ContainerRun {
    std::unique_ptr<launcher::WorkerGroup> group;           // null: it does not run
    std::unique_ptr<asio::steady_timer> grace;              // until SIGKILL
    int tries = 0;                                          // failures of bubblewrap itself in a row
    std::string cgroup;                                     // empty: none
    std::unique_ptr<asio::posix::stream_descriptor> built;  // until the container's sandbox is complete
    std::unique_ptr<ProbeRun> probes;
  };

  pid_t Find(std::string_view name, const Sought& sought) const {
    for (size_t i = 0; i < cycle_.size(); ++i) {
      if (cycle_.Program(i).name != name || !runs_[i].group) continue;
      for (const pid_t command : Commands(i)) {
        const pid_t pid = sought.entries.empty() ? command : FindBelow(command, sought);
        if (pid > 0) return pid;
      }
    }
    return 0;
  }

  void StartContainer(size_t i) {
    ContainerRun& run = runs_[i];
    const ContainerProgram& container = cycle_.Program(i);
    std::weak_ptr<Impl> weak = weak_from_this();
    launcher::WorkerGroupEvents events{.worker_exited = [](const launcher::ExitRecord&) {},
                                       .all_gone =
                                           [weak, i] {
                                             if (auto self = weak.lock()) self->Gone(i);
                                           }};
    run.group =
        std::make_unique<launcher::WorkerGroup>(context_.loop, context_.reaper, context_.console, std::move(events));
    // Removes the message of the container's previous run.
    const std::ofstream emptied(container.termination_message, std::ios::trunc);
    launcher::WorkerSpec spec;
    spec.argv = view_.enter;
    if (context_.bwrap.empty()) {
      spec.working_directory = container.working_directory;
    } else {
      const std::vector<std::string> words = SandboxWords({.bwrap = context_.bwrap,
                                                           .own_pids = context_.own_pids,
                                                           .hostname = program_.hostname,
                                                           .files = view_.files,
                                                           .root = container.root,
                                                           .mounts = container.mounts,
                                                           .working_directory = container.working_directory},
                                                          ListRealFolder);
      spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    }
    spec.argv.insert(spec.argv.end(), container.command.begin(), container.command.end());
    spec.environment = container.environment;
    const Descriptor built = BuiltSign(i, &spec);
    run.cgroup = Limited(container);
    const std::vector<std::string> before = CgroupWords(run.cgroup);
    spec.argv.insert(spec.argv.begin(), before.begin(), before.end());
    const std::string log = NextLog(folder_ + "/logs", container.name);
    for (launcher::StreamSpec* stream : {&spec.output.out, &spec.output.err}) {
      stream->file = log;
      stream->prefix = view_.prefix;
      stream->filters = view_.filters;
      stream->filter_file = view_.filter_file;
    }
    spec.output.out.console = container.name != kAgentContainer;  // `muster install` has nothing to say here
    spec.output.err.keep_tail = true;
    const auto started = run.group->Start({spec});
    if (!started.ok()) {
      run.group.reset();
      const int code = absl::IsNotFound(started) ? 127 : absl::IsPermissionDenied(started) ? 126 : 128;
      cycle_.Ended(i, {.exit_code = code, .reason = "ContainerCannotRun", .message = std::string(Message(started))},
                   WallNow());
    } else {
      cycle_.Started(i, WallNow());
      AskOnceBuilt(i);
    }
    PostChanged();
  }

  void StopAsking(size_t i) {
    runs_[i].built.reset();
    runs_[i].probes.reset();
  }

  // The container's cgroup with its limits; empty: it has none.
  std::string Limited(const ContainerProgram& container) {
    if (context_.limits == nullptr) return "";
    auto made =
        context_.limits->Make(fs::path(folder_).filename().string(), program_.limits, container.name, container.limits);
    if (made.ok()) return *std::move(made);
    view_.unlimited(std::string(Message(made.status())));
    return "";
  }

  // Gives bubblewrap a descriptor that it closes (--block-fd) once the sandbox is complete; ContainerRun::built, the
  // other end, is readable then. A probe's command that starts earlier would see an incomplete sandbox.
  Descriptor BuiltSign(size_t i, launcher::WorkerSpec* spec) {
    ContainerRun& run = runs_[i];
    run.built.reset();
    const auto bwrap = std::find(spec->argv.begin(), spec->argv.end(), context_.bwrap);
    if (!HasProbes(cycle_.Program(i)) || bwrap == spec->argv.end()) return Descriptor();
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Descriptor();
    Descriptor ours(ends[0]), theirs(ends[1]);
    const char go = 1;
    if (write(ours.get(), &go, sizeof go) != sizeof go) return Descriptor();
    auto watched = std::make_unique<asio::posix::stream_descriptor>(context_.loop);
    if (!Attach(*watched, std::move(ours), "epoll_ctl").ok()) return Descriptor();
    run.built = std::move(watched);
    spec->kept.push_back(theirs.get());
    const std::vector<std::string> words = {"--block-fd", std::to_string(theirs.get())};
    spec->argv.insert(bwrap + 1, words.begin(), words.end());
    return theirs;
  }

  void AskOnceBuilt(size_t i) {
    if (!HasProbes(cycle_.Program(i))) return;
    if (!runs_[i].built) return AskAbout(i);
    runs_[i].built->async_wait(asio::posix::descriptor_base::wait_read,
                               [weak = weak_from_this(), i](const boost::system::error_code& error) {
                                 auto self = weak.lock();
                                 if (error || !self || !self->cycle_.IsRunning(i)) return;
                                 self->runs_[i].built.reset();
                                 self->AskAbout(i);
                               });
  }

  void AskAbout(size_t i) {
    const ContainerProgram& container = cycle_.Program(i);
    const auto words = [this, i](const std::vector<std::string>& command) {
      const std::vector<pid_t> inside = runs_[i].group ? Inside(i) : std::vector<pid_t>();
      if (inside.empty()) return std::vector<std::string>();
      std::vector<std::string> all = CgroupWords(runs_[i].cgroup);
      for (std::string& word : EnterWords(inside.front(), cycle_.Program(i).working_directory, command)) {
        all.push_back(std::move(word));
      }
      return all;
    };
    const ProbeContext context{.loop = context_.loop,
                               .reaper = context_.reaper,
                               .console = context_.console,
                               .address = address_,
                               .words = words,
                               .environment = container.environment};
    runs_[i].probes = std::make_unique<ProbeRun>(
        context, container, [weak = weak_from_this(), i](ProbeKind kind, const ProbeAnswer& answer) {
          if (auto self = weak.lock()) self->Found(i, kind, answer);
        });
  }

  void Found(size_t i, ProbeKind kind, const ProbeAnswer& answer) {
    const ContainerProgram& container = cycle_.Program(i);
    const bool success = answer.kind == ProbeAnswer::Kind::kSuccess;
    if (answer.kind == ProbeAnswer::Kind::kUnknown) {
      return view_.found(fmt::format("container {}: its {} probe could not be run, which counts as no result: {}",
                                     container.name, NameOf(kind), answer.said));
    }
    if (kind == ProbeKind::kReadiness) {
      cycle_.Ready(i, success);
    } else if (success) {
      if (kind == ProbeKind::kStartup) cycle_.StartupDone(i);
    } else {
      view_.unhealthy(
          fmt::format("{} probe failed: {}", kind == ProbeKind::kStartup ? "Startup" : "Liveness", answer.said));
      cycle_.Unhealthy(i, kind == ProbeKind::kStartup ? container.startup->grace : container.liveness->grace);
    }
    if (!success) {
      view_.found(fmt::format("container {}: its {} probe has failed, {}: {}", container.name, NameOf(kind),
                              kind == ProbeKind::kReadiness ? "it is not ready" : "it is stopped", answer.said));
    }
    Step();
    PostChanged();
  }

  // The first processes in the container's namespaces.
  std::vector<pid_t> Inside(size_t i) const {
    std::vector<pid_t> inside;
    for (const int64_t started : runs_[i].group->pids()) {
      const auto pid = static_cast<pid_t>(started);
      const std::vector<pid_t> first = context_.bwrap.empty() ? std::vector<pid_t>{pid} : ChildrenOf(pid);
      if (!first.empty()) inside.push_back(first.front());
    }
    return inside;
  }

  // The processes of the command. With own_pids they are children of the namespace's process 1, bubblewrap's.
  std::vector<pid_t> Commands(size_t i) const {
    if (!context_.own_pids) return Inside(i);
    std::vector<pid_t> commands;
    for (const pid_t first : Inside(i)) {
      const std::vector<pid_t> children = ChildrenOf(first);
      if (!children.empty()) commands.push_back(children.front());
    }
    return commands;
  }

  // As the kubelet does: SIGTERM to the command alone, and after the grace SIGKILL to all processes that are left. A
  // command that has not begun gets no signal, so it gets no grace.
  void AskToEnd(size_t i) {
    ContainerRun& run = runs_[i];
    if (!run.group) return;
    StopAsking(i);
    const std::vector<pid_t> commands = Commands(i);
    for (const pid_t command : commands) kill(command, SIGTERM);
    const Duration grace = commands.empty() ? Duration::zero() : cycle_.Grace(i);
    run.grace = std::make_unique<asio::steady_timer>(context_.loop, grace);
    run.grace->async_wait([weak = weak_from_this(), i](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (!error && self && self->runs_[i].group) self->runs_[i].group->Stop(SIGKILL, Duration::zero());
    });
  }

  void StartAgain(size_t i) {
    asio::post(context_.loop, [weak = weak_from_this(), i, group = std::shared_ptr(std::move(runs_[i].group))] {
      if (auto self = weak.lock()) self->StartContainer(i);
    });
  }

  void Gone(size_t i) {
    ContainerRun& run = runs_[i];
    const bool is_ending = run.grace != nullptr;
    run.grace.reset();
    StopAsking(i);
    ContainerEnd end;
    const auto& records = run.group->records();
    if (!records.empty()) {
      end.exit_code = records.front().exit_code;
      end.oom = records.front().oom_killed;
    }
    if (!run.cgroup.empty()) {
      end.oom = end.oom || PodLimits::KilledForMemory(run.cgroup);
      PodLimits::Remove(run.cgroup);
    }
    end.message = MessageIn(cycle_.Program(i).termination_message);
    if (const std::string why = records.empty() ? "" : SandboxTrouble(records.front()); !why.empty()) {
      if (!is_ending && ++run.tries < kMostTries) return StartAgain(i);
      end = {.exit_code = 128, .reason = "ContainerCannotRun", .message = why};
    }
    run.tries = 0;
    const std::string ended = DescribeExit(end.exit_code);
    cycle_.Ended(i, std::move(end), WallNow());
    if (const auto pause = cycle_.Pause(i); pause > std::chrono::seconds(0)) {
      view_.waits(fmt::format("container {} has ended: {}; it starts again in {} s", cycle_.Program(i).name, ended,
                              pause.count()));
    }
    // Destroys the group later, since this is a callback of the group itself.
    asio::post(context_.loop, [weak = weak_from_this(), group = std::move(run.group)] {
      if (auto self = weak.lock()) self->Step();
    });
    PostChanged();
  }

  void WakeAt(WallTime when) {
    timer_.expires_after(std::max<Duration>(when - WallNow(), Duration::zero()));
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (!error && self) self->Step();
    });
  }

  void PostChanged() {
    asio::post(context_.loop, [self = shared_from_this()] { self->changed_(); });
  }

  const PodContext context_;
  const PodProgram program_;
  const std::string folder_, address_;
  const PodView view_;
  std::function<void()> changed_;
  PodLifecycle cycle_;
  std::vector<ContainerRun> runs_;  // by position
  asio::steady_timer timer_, deadline_;
};

PodRun::PodRun(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

PodRun::~PodRun() { impl_->End(); }

StatusOr<std::unique_ptr<PodRun>> PodRun::Start(const PodContext& context, PodProgram program, const PodPlace& place,
                                                PodView view, std::function<void()> changed) {
  MUSTER_RETURN_IF_ERROR(Prepare(program, place.folder, context.agent_files));
  auto impl = std::make_shared<Impl>(context, std::move(program), place, std::move(view), std::move(changed));
  impl->Begin();
  return std::unique_ptr<PodRun>(new PodRun(std::move(impl)));
}

void PodRun::Stop() { impl_->Stop(); }
void PodRun::Kill() { impl_->Kill(); }
bool PodRun::Signal(std::string_view name, int signal, const Sought& sought) {
  return impl_->Signal(name, signal, sought);
}
absl::Status PodRun::EndWith(std::string_view name, int code, const Sought& sought,
                             std::function<void(absl::Status)> done) {
  return impl_->EndWith(name, code, sought, std::move(done));
}
bool PodRun::over() const { return impl_->over(); }
Json PodRun::Status(const Json& old) const { return impl_->Status(old); }

}  // namespace muster::local
