// SPDX-License-Identifier: Apache-2.0
#include "local/run.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fstream>
#include <set>

#include "base/host_facts.h"
#include "base/host_fs.h"
#include "base/host_names.h"
#include "base/iso_time.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/plan/pod_fields.h"
#include "controller/reconcile/observed.h"
#include "local/drill_run.h"
#include "local/image/root_files.h"
#include "local/pod/check.h"
#include "local/pod/names.h"
#include "local/pod/reading.h"
#include "local/pod/working_folder.h"
#include "local/state/left_processes.h"
#include "local/state/rank_marks.h"

namespace muster::local {

using namespace controller;

namespace {

namespace asio = boost::asio;

// The resolv.conf with the real name servers, if /etc/resolv.conf names only 127.0.0.x, as with systemd-resolved: hosts
// with a network of their own cannot reach those. Empty: they can use /etc/resolv.conf.
std::string NameServersFile(const HostFs& fs) {
  constexpr char kOfSystemd[] = "/run/systemd/resolve/resolv.conf";
  const std::string text = fs.Read("/etc/resolv.conf").value_or("");
  bool any = false;
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.starts_with("nameserver")) continue;
    any = true;
    if (line.find("127.0.0.") == std::string_view::npos) return "";
  }
  return any && fs.Exists(kOfSystemd) ? kOfSystemd : "";
}

PodContext WithLimits(PodContext context, PodLimits* limits) {
  context.limits = limits;
  return context;
}

std::string TextOf(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Open MPI recognizes its own host by the host name or an interface's address, which is not a pod's if hosts share this
// machine's network. So names are cut at the first dot: that is the host name, which resolves here, too.
void CutNamesOfHosts(std::vector<std::string>* environment) {
  for (std::string& entry : *environment) {
    for (const char* name : {"OMPI_MCA_orte_keep_fqdn_hostnames", "PRTE_MCA_prte_keep_fqdn_hostnames"}) {
      if (entry == fmt::format("{}=true", name)) entry = fmt::format("{}=false", name);
    }
  }
}

}  // namespace

class LocalRun::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(const PodContext& context, World* world, LocalJob* job, LocalRunOptions options, LocalRunEvents events)
      : limits_("/sys/fs/cgroup", TextOf("/proc/self/cgroup"), options.folder + "/cgroup", job->State().name,
                context.guard),
        context_(WithLimits(context, &limits_)),
        world_(world),
        job_(job),
        options_(std::move(options)),
        events_(std::move(events)),
        controllers_(world, job),
        timer_(context.loop),
        facts_(ReadHostFacts()) {}

  Status Begin() {
    limits_.RemoveLeft();
    std::vector<std::string> texts;
    for (const Drill& drill : options_.drills) {
      if (!drill.after) {
        texts.push_back(drill.text);
        continue;
      }
      auto timer = std::make_unique<asio::steady_timer>(context_.loop, *drill.after);
      timer->async_wait([weak = weak_from_this(), &drill](const boost::system::error_code& error) {
        auto self = weak.lock();
        if (!error && self) self->CarryOut(drill);
      });
      drill_timers_.push_back(std::move(timer));
    }
    if (!texts.empty() || events_.lines.take) {
      MUSTER_ASSIGN_OR_RETURN(output_, OutputWatch::Begin(
                                           context_.loop, options_.folder + "/drills", std::move(texts),
                                           [this](const std::string& text) { Seen(text); }, events_.lines));
    }
    WakeSoon();
    return absl::OkStatus();
  }

  void WakeSoon() {
    if (woken_) return;
    woken_ = true;
    asio::post(context_.loop, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->Wake();
    });
  }

  void Stop(bool at_once) {
    for (auto& [uid, pod] : pods_) at_once ? pod.run->Kill() : pod.run->Stop();
    stopped_ = true;
    WakeSoon();
  }

  const std::vector<PodEnd>& ends() const { return ends_; }
  const std::vector<PodRecord>& pods() const { return records_; }
  const std::vector<DrillRecord>& drills() const { return drills_; }

  const Status& refused() const { return refused_; }

  std::vector<std::string> MissedDrills() const {
    std::vector<std::string> missed;
    for (const Drill& drill : options_.drills) {
      const auto told = drilled_.find(drill.said);
      if (told != drilled_.end() && told->second.ok()) continue;
      const std::string why = told != drilled_.end() ? std::string(Message(told->second))
                              : drill.after          ? "the job had ended by then"
                                                     : "no line of output has its text";
      missed.push_back(fmt::format("{}: {}", drill.said, why));
    }
    return missed;
  }

  void End() {
    timer_.cancel();
    drill_timers_.clear();
    output_.reset();
    pods_.clear();
  }

 private:
  struct StartedPod {
    std::unique_ptr<PodRun> run;
    TimePoint begun;
    size_t record;  // its place in records_
  };

  void Wake() {
    woken_ = false;
    for (const Json* pod : world_->List("Pod")) WriteStatus(*pod);
    if (stopped_) {
      events_.changed();
      return EndIfOver();
    }
    const Controllers::Settled settled = controllers_.Settle(WallNow());
    const LocalJobState state = job_->State();
    for (const EventText& event : settled.events) {
      // The verdict has the sentence of the failure that ended the job.
      if (!state.finished || state.succeeded || event.message != state.message) events_.event(event);
    }
    for (const std::string& trouble : settled.troubles) SayOnce(trouble, events_.trouble);
    std::vector<Json> pods;
    for (const Json* pod : world_->List("Pod")) pods.push_back(*pod);
    for (const Json& pod : pods) JoinNetwork(pod);
    WriteHosts();
    for (const Json& pod : pods) {
      if (refused_.ok()) StartOrStop(pod);
    }
    Forget();
    if (settled.again) WakeAt(*settled.again);
    events_.changed();
    EndIfOver();
  }

  // Writes the pod's status into the world.
  void WriteStatus(const Json& pod) {
    const auto found = pods_.find(UidOf(pod));
    if (found == pods_.end()) return;
    const StartedPod& started = found->second;
    Json told = pod;
    told["status"] = started.run->Status(PartOf(pod, "status"));
    PodRecord& record = records_[started.record];
    record.ready = IsReady(told);
    if (started.run->over() && !record.ended) {
      record.ended = WallNow();
      record.exit_code = ExitCodeOf(told);
      ends_.push_back(
          {.host = HostOf(pod), .exit_code = record.exit_code, .lived = MonotonicClock::now() - started.begun});
    }
    const Status updated = world_->Update(std::move(told), WallNow());
    if (!updated.ok()) SayOnce(std::string(Message(updated)), events_.trouble);
  }

  // Starts a pod, or stops one that is being deleted, or that its job ends.
  void StartOrStop(const Json& pod) {
    const auto found = pods_.find(UidOf(pod));
    const bool deleted = FindField(PartOf(pod, "metadata"), "deletionTimestamp") != nullptr;
    if (found != pods_.end()) {
      const bool ends = deleted || FindField(PartOf(pod, "metadata", "annotations"), kEndedAnnotation) != nullptr;
      if (ends && !found->second.run->over()) found->second.run->Stop();
      return;
    }
    const std::string phase = TextField(PartOf(pod, "status"), "phase");
    if (phase == "Failed" || phase == "Succeeded") return;
    const Status started = deleted ? absl::CancelledError("it was deleted before it ran") : StartPod(pod);
    if (started.ok()) return;
    if (!deleted && IsStep(pod)) return Refuse(Annotate(started, NameOf(pod)));
    Json failed = pod;
    failed["status"] = {{"phase", "Failed"}, {"reason", "CannotRun"}, {"message", Message(started)}};
    if (!deleted) SayOnce(fmt::format("{}: {}", NameOf(pod), Message(started)), events_.trouble);
    if (world_->Update(std::move(failed), WallNow()).ok()) WakeSoon();
  }

  // A pod that cannot start here will not start at another try: ends the run.
  void Refuse(Status why) {
    if (refused_.ok()) refused_ = std::move(why);
    Stop(false);
  }

  bool HasOwnNetwork(const Json& pod) const {
    return context_.network != nullptr && !PartOf(pod, "spec").value("hostNetwork", false);
  }

  // Gives the pod's host its network and address. Call it before WriteHosts(), which writes the address.
  void JoinNetwork(const Json& pod) {
    if (context_.network == nullptr || !joined_.insert(HostOf(pod)).second) return;
    StatusOr<std::string> address = context_.network->gateway();
    if (HasOwnNetwork(pod)) address = context_.network->Join(HostOf(pod));
    if (address.ok()) {
      hosts_.SetAddress(HostOf(pod), *std::move(address));
    } else {
      no_network_[HostOf(pod)] = address.status();
    }
  }

  PodPlace PlaceOf(const Json& pod) {
    const std::string address = hosts_.AddressOf(pod);
    PodPlace place{.folder = fmt::format("{}/pods/{}", options_.folder, NameOf(pod)),
                   .claims = options_.claims,
                   .address = address,
                   .machine = HostName(),
                   .own_root = !context_.bwrap.empty(),
                   .milli_cpus = int64_t{1000} * ContainerCpus(facts_),
                   .memory_bytes = facts_.memory_limit.value_or(facts_.memory_total),
                   .gpus = facts_.gpus(),
                   .entrypoints = options_.entrypoints,
                   .images = options_.images,
                   .shown_folder = options_.shown_folder,
                   .environment = options_.environment};
    place.environment.push_back(RunMark(options_.id));
    place.environment.push_back(fmt::format("HOSTNAME={}", HostOf(pod)));
    place.environment.push_back(fmt::format("MUSTER_JOB={}", options_.folder.substr(options_.folder.rfind('/') + 1)));
    place.environment.push_back(fmt::format("MUSTER_HTTP_PORT={}:{}", address, kAgentHttpPort));
    if (!HasOwnNetwork(pod)) {  // hosts share one network and its ports: each listens at its own address
      place.environment.push_back(fmt::format("PET_LOCAL_ADDR={}", address));
      place.environment.push_back(fmt::format("MUSTER_RSH_LISTEN={}:{}", address, kAgentRshPort));
    }
    // torchrun's --log-dir, unless the job sets one. The report of the run is made from the files there.
    place.environment.push_back(fmt::format("PET_LOG_DIR={}", AttemptsOf(pod)));
    return place;
  }

  std::string AttemptsOf(const Json& pod) const {
    return fmt::format("{}/{}", AttemptsFolder(options_.folder), NameOf(pod));
  }

  StatusOr<PodProgram> ProgramOfPod(const Json& pod, const PodPlace& place) {
    const auto find = [this](std::string_view kind, std::string_view name) { return world_->Find(kind, name); };
    MUSTER_ASSIGN_OR_RETURN(PodProgram program, ProgramOf(pod, place, find));
    for (const std::string& ignored : program.ignored) SayOnce(ignored, events_.ignored);
    for (auto* containers : {&program.init_containers, &program.containers}) {
      for (ContainerProgram& container : *containers) {
        if (container.working_directory.empty()) container.working_directory = options_.work_folder;
        NeedWorkingFolder(
            place.folder, [&container](const std::string& path) { return IsThere(container.root, path); }, &container,
            &program.folders);
        if (!HasOwnNetwork(pod)) CutNamesOfHosts(&container.environment);
      }
    }
    if (!place.own_root) PutAddresses(&program);
    return program;
  }

  PodView ViewOf(const Json& pod) {
    PodView view{.files = {{.source = HostsFile(), .target = "/etc/hosts", .read_only = true}},
                 .prefix = fmt::format("[{}] ", HostOf(pod))};
    if (HasOwnNetwork(pod)) {
      view.enter = context_.network->Enter(HostOf(pod));
      // No name server listens on the loopback of the host's own network.
      if (!name_servers_.empty()) {
        view.files.push_back({.source = name_servers_, .target = "/etc/resolv.conf", .read_only = true});
      }
    }
    view.found = [weak = weak_from_this(), name = NameOf(pod)](const std::string& text) {
      if (auto self = weak.lock()) self->events_.event({true, "Unhealthy", fmt::format("{}: {}", name, text)});
    };
    view.unhealthy = [weak = weak_from_this(), name = NameOf(pod), uid = UidOf(pod)](const std::string& text) {
      if (auto self = weak.lock()) self->NoteUnhealthy(name, uid, text);
    };
    view.waits = [weak = weak_from_this(), name = NameOf(pod)](const std::string& text) {
      if (auto self = weak.lock()) self->events_.event({true, "BackOff", fmt::format("{}: {}", name, text)});
    };
    view.unlimited = [weak = weak_from_this()](const std::string& why) {
      if (auto self = weak.lock()) self->SayOnce("limits of CPU and memory are not set: " + why, self->events_.trouble);
    };
    if (output_) {
      view.filters = output_->texts();
      view.filter_file = output_->FileOf(NameOf(pod));
    }
    return view;
  }

  // Makes the kubelet's Event, by which a decision knows why the container ends.
  void NoteUnhealthy(const std::string& pod, const std::string& uid, const std::string& text) {
    const WallTime now = WallNow();
    const Json event = {{"apiVersion", "v1"},
                        {"kind", "Event"},
                        {"metadata", {{"name", pod + ".unhealthy"}}},
                        {"involvedObject", {{"kind", "Pod"}, {"name", pod}, {"uid", uid}}},
                        {"reason", "Unhealthy"},
                        {"message", text},
                        {"lastTimestamp", IsoMicroTime(now)}};
    if (!world_->Create(event, now).ok()) (void)world_->Update(event, now);
  }

  // Puts the mark of ranks into the environment of the trainer's container.
  PodRecord RecordOf(const Json& pod, PodProgram* program) const {
    PodRecord record{.name = NameOf(pod), .host = HostOf(pod), .node_rank = options_.nodes.Of(pod), .begun = WallNow()};
    for (const auto* containers : {&program->init_containers, &program->containers}) {
      for (const ContainerProgram& container : *containers) record.containers.push_back(container.name);
    }
    for (ContainerProgram& container : program->containers) {
      if (container.name == kTrainerContainer || container.name == kPyTorchContainer) {
        LimitThreads(&container.environment);
        record.marks_ranks = MarkRanks(&container.environment);
      }
    }
    return record;
  }

  Status StartPod(const Json& pod) {
    if (const auto why = no_network_.find(HostOf(pod)); why != no_network_.end()) return why->second;
    const PodPlace place = PlaceOf(pod);
    Json spelled = pod;
    spelled["spec"]["nodeName"] = place.machine;
    MUSTER_ASSIGN_OR_RETURN(PodProgram program, ProgramOfPod(spelled, place));
    PodRecord record = RecordOf(pod, &program);
    record.address = place.address;
    MUSTER_ASSIGN_OR_RETURN(auto run,
                            PodRun::Start(context_, std::move(program), place, ViewOf(pod), [weak = weak_from_this()] {
                              if (auto self = weak.lock()) self->WakeSoon();
                            }));
    pods_[UidOf(pod)] = {.run = std::move(run), .begun = MonotonicClock::now(), .record = records_.size()};
    records_.push_back(std::move(record));
    if (world_->Update(std::move(spelled), WallNow()).ok()) WakeSoon();
    return absl::OkStatus();
  }

  // Replaces names of pods by addresses: containers without an /etc/hosts of their own cannot resolve them.
  void PutAddresses(PodProgram* program) {
    const auto names = hosts_.NamesOf(world_->List("Pod"));
    for (PodFile& file : program->files) file.text = WithAddresses(file.text, names);
    for (auto* containers : {&program->init_containers, &program->containers}) {
      for (ContainerProgram& container : *containers) {
        for (std::string& word : container.command) word = WithAddresses(word, names);
        for (std::string& entry : container.environment) {
          if (!entry.starts_with("HOSTNAME=")) entry = WithAddresses(entry, names);
        }
      }
    }
  }

  void Seen(const std::string& text) {
    for (const Drill& drill : options_.drills) {
      if (!drill.after && drill.text == text) CarryOut(drill);
    }
  }

  void CarryOut(const Drill& drill) {
    std::vector<DrillTarget> targets;
    for (const Json* pod : world_->List("Pod")) {
      const auto found = pods_.find(UidOf(*pod));
      if (found == pods_.end()) continue;
      targets.push_back({*pod, *found->second.run, options_.nodes.Of(*pod), HasOwnNetwork(*pod), AttemptsOf(*pod)});
    }
    CarryOutDrill(drill, targets, context_.network,
                  [weak = weak_from_this(), said = drill.said](const Status& status, const std::string& done) {
                    auto self = weak.lock();
                    if (!self) return;
                    self->drilled_[said] = status;
                    if (status.ok()) self->drills_.push_back({WallNow(), said, done});
                    self->events_.drill(fmt::format("{}: {}", said, status.ok() ? done : std::string(Message(status))));
                    self->events_.changed();
                  });
  }

  // Kills the runs of pods that are gone from the world, and forgets those that have ended.
  void Forget() {
    std::set<std::string> there;
    for (const Json* pod : world_->List("Pod")) there.insert(UidOf(*pod));
    for (auto& [uid, pod] : pods_) {
      if (!there.contains(uid) && !pod.run->over()) pod.run->Kill();
    }
    std::erase_if(pods_, [&there](const auto& pod) { return !there.contains(pod.first) && pod.second.run->over(); });
  }

  std::string HostsFile() const { return options_.folder + "/hosts"; }

  // Writes the file in place, since containers have this inode mounted.
  void WriteHosts() {
    const std::string text = hosts_.FileOf(world_->List("Pod"), world_->List("Service"));
    if (text == written_) return;
    std::ofstream file(HostsFile(), std::ios::trunc);
    file << text << std::flush;
    if (!file) SayOnce(fmt::format("{}: it cannot be written", HostsFile()), events_.trouble);
    written_ = text;
  }

  void EndIfOver() {
    if (!stopped_ && !job_->State().finished) return;
    for (const auto& [uid, pod] : pods_) {
      if (!pod.run->over()) return;
    }
    if (over_) return;
    over_ = true;
    timer_.cancel();
    events_.over();
  }

  void WakeAt(WallTime when) {
    timer_.expires_after(std::max<Duration>(when - WallNow(), Duration::zero()));
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (!error && self) self->WakeSoon();
    });
  }

  void SayOnce(const std::string& text, const std::function<void(const std::string&)>& say) {
    if (said_.insert(text).second) say(text);
  }

  PodLimits limits_;
  const PodContext context_;
  World* const world_;
  LocalJob* const job_;
  const LocalRunOptions options_;
  const LocalRunEvents events_;
  Controllers controllers_;
  PodNames hosts_;
  std::set<std::string> joined_;              // host names
  std::map<std::string, Status> no_network_;  // by host name
  asio::steady_timer timer_;
  const HostFacts facts_;
  const std::string name_servers_ = NameServersFile(HostFs());
  std::unique_ptr<OutputWatch> output_;
  std::vector<std::unique_ptr<asio::steady_timer>> drill_timers_;
  std::map<std::string, Status> drilled_;  // by Drill::said: how it went
  std::vector<DrillRecord> drills_;
  std::map<std::string, StartedPod> pods_;  // by uid
  std::vector<PodEnd> ends_;
  std::vector<PodRecord> records_;
  std::set<std::string> said_;
  std::string written_;
  Status refused_;
  bool woken_ = false, stopped_ = false, over_ = false;
};

LocalRun::LocalRun(const PodContext& context, World* world, LocalJob* job, LocalRunOptions options,
                   LocalRunEvents events)
    : impl_(std::make_shared<Impl>(context, world, job, std::move(options), std::move(events))) {}
LocalRun::~LocalRun() { impl_->End(); }
Status LocalRun::Begin() { return impl_->Begin(); }
const std::vector<PodRecord>& LocalRun::pods() const { return impl_->pods(); }
const std::vector<DrillRecord>& LocalRun::drills() const { return impl_->drills(); }
const Status& LocalRun::refused() const { return impl_->refused(); }
std::vector<std::string> LocalRun::MissedDrills() const { return impl_->MissedDrills(); }
void LocalRun::Stop() { impl_->Stop(false); }
void LocalRun::Kill() { impl_->Stop(true); }
const std::vector<PodEnd>& LocalRun::ends() const { return impl_->ends(); }

}  // namespace muster::local
