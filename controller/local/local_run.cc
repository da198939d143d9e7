#include "controller/local/local_run.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fstream>
#include <set>

#include "base/exit_codes.h"
#include "base/host_facts.h"
#include "base/host_names.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/local/output_watch.h"
#include "controller/local/pod_names.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

namespace asio = boost::asio;

std::string NameOf(const Json& object) { return TextField(PartOf(object, "metadata"), "name"); }
std::string UidOf(const Json& object) { return TextField(PartOf(object, "metadata"), "uid"); }

// The first of its containers' codes that is not 0.
int CodeOf(const Json& pod) {
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : ListField(PartOf(pod, "status"), list)) {
      const int code = CountField(PartOf(container, "state", "terminated"), "exitCode");
      if (code != 0) return code;
    }
  }
  return 0;
}

// Its place among the job's nodes; -1: it is none.
int NodeRankOf(const Json& pod) {
  const Json& labels = MapField(PartOf(pod, "metadata"), "labels");
  const std::string type = TextField(labels, kReplicaTypeLabel);
  const auto index = ParseInt(TextField(labels, type.empty() ? kIndexLabel : kReplicaIndexLabel));
  if (!index) return -1;
  if (type.empty())
    return FindNamed(PartOf(pod, "spec"), "containers", kTrainerContainer) != nullptr ? static_cast<int>(*index) : -1;
  const Json* container = FindNamed(PartOf(pod, "spec"), "containers", kPyTorchContainer);
  const Json* rank = container == nullptr ? nullptr : FindNamed(*container, "env", "PET_NODE_RANK");
  const auto number = rank == nullptr ? index : ParseInt(TextField(*rank, "value"));
  return number ? static_cast<int>(*number) : -1;
}

}  // namespace

class LocalRun::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(PodMeans means, World* world, LocalJob* job, LocalRunOptions options, LocalRunEvents events)
      : means_(means),
        world_(world),
        job_(job),
        options_(std::move(options)),
        events_(std::move(events)),
        controllers_(world, job),
        timer_(means.loop),
        facts_(ReadHostFacts()) {}

  Status Begin() {
    std::vector<std::string> texts;
    for (const Drill& drill : options_.drills) {
      if (!drill.after) {
        texts.push_back(drill.text);
        continue;
      }
      auto timer = std::make_unique<asio::steady_timer>(means_.loop, *drill.after);
      timer->async_wait([weak = weak_from_this(), &drill](const boost::system::error_code& error) {
        auto self = weak.lock();
        if (!error && self) self->Carry(drill);
      });
      drill_timers_.push_back(std::move(timer));
    }
    if (!texts.empty()) {
      MUSTER_ASSIGN_OR_RETURN(output_, OutputWatch::Begin(means_.loop, options_.folder + "/drills", std::move(texts),
                                                          [this](const std::string& text) { Seen(text); }));
    }
    WakeSoon();
    return absl::OkStatus();
  }

  void WakeSoon() {
    if (woken_) return;
    woken_ = true;
    asio::post(means_.loop, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->Wake();
    });
  }

  void Stop() {
    for (auto& [uid, pod] : pods_) stopped_ ? pod->Kill() : pod->Stop();
    stopped_ = true;
    WakeSoon();
  }

  const std::vector<PodEnd>& ends() const { return ends_; }

  void End() {
    timer_.cancel();
    drill_timers_.clear();
    output_.reset();
    pods_.clear();
  }

 private:
  void Wake() {
    woken_ = false;
    for (const Json* pod : world_->List("Pod")) Tell(*pod);
    if (stopped_) return EndIfOver();
    const Controllers::Settled settled = controllers_.Settle(WallNow());
    for (const EventText& event : settled.events) events_.event(event);
    for (const std::string& trouble : settled.troubles) Once(trouble, events_.trouble);
    WriteHosts();
    std::vector<Json> pods;
    for (const Json* pod : world_->List("Pod")) pods.push_back(*pod);
    for (const Json& pod : pods) Care(pod);
    Forget();
    if (settled.again) WakeAt(*settled.again);
    EndIfOver();
  }

  // A pod's status goes into the world.
  void Tell(const Json& pod) {
    const auto run = pods_.find(UidOf(pod));
    if (run == pods_.end()) return;
    Json told = pod;
    told["status"] = run->second->Status(PartOf(pod, "status"));
    if (run->second->over() && ended_.insert(run->first).second) {
      ends_.push_back(
          {.host = HostOf(pod), .exit_code = CodeOf(told), .lived = MonotonicClock::now() - begun_[run->first]});
    }
    const Status updated = world_->Update(std::move(told), WallNow());
    if (!updated.ok()) Once(std::string(Message(updated)), events_.trouble);
  }

  // Starts a pod, or stops one that is being deleted.
  void Care(const Json& pod) {
    const auto run = pods_.find(UidOf(pod));
    const bool deleted = FindField(PartOf(pod, "metadata"), "deletionTimestamp") != nullptr;
    if (run != pods_.end()) {
      if (deleted && !run->second->over()) run->second->Stop();
      return;
    }
    const std::string phase = TextField(PartOf(pod, "status"), "phase");
    if (phase == "Failed" || phase == "Succeeded") return;
    const Status started = deleted ? absl::CancelledError("it was deleted before it ran") : StartPod(pod);
    if (started.ok()) return;
    Json failed = pod;
    failed["status"] = {{"phase", "Failed"}, {"reason", "CannotRun"}, {"message", Message(started)}};
    if (!deleted) Once(fmt::format("{}: {}", NameOf(pod), Message(started)), events_.trouble);
    if (world_->Update(std::move(failed), WallNow()).ok()) WakeSoon();
  }

  Status StartPod(const Json& pod) {
    const std::string uid = UidOf(pod), address = hosts_.AddressOf(pod);
    PodPlace place{.folder = fmt::format("{}/pods/{}", options_.folder, NameOf(pod)),
                   .claims = options_.claims,
                   .address = address,
                   .machine = HostName(),
                   .milli_cpus = int64_t{1000} * ContainerCpus(facts_),
                   .memory_bytes = facts_.memory_limit.value_or(facts_.memory_total),
                   .entrypoints = options_.entrypoints,
                   .environment = options_.environment};
    place.environment.push_back(fmt::format("HOSTNAME={}", HostOf(pod)));
    // Each pod has an address of its own, and all have one network: the port must not be another pod's.
    place.environment.push_back(fmt::format("MUSTER_HTTP_PORT={}:{}", address, kAgentHttpPort));
    // torchrun's --log-dir, where the job names none: what the report of the run is made from.
    place.environment.push_back(fmt::format("PET_LOG_DIR={}/{}", AttemptsFolder(options_.folder), NameOf(pod)));
    Json spelled = pod;
    spelled["spec"]["nodeName"] = place.machine;
    const auto find = [this](std::string_view kind, std::string_view name) { return world_->Find(kind, name); };
    MUSTER_ASSIGN_OR_RETURN(PodProgram program, ProgramOf(spelled, place, find));
    for (const std::string& ignored : program.ignored) Once(ignored, events_.ignored);
    for (auto* containers : {&program.init_containers, &program.containers}) {
      for (ContainerProgram& container : *containers) {
        if (container.working_directory.empty()) container.working_directory = options_.work_folder;
        // Nobody asks them: what runs counts as started and ready.
        container.startup.reset();
        container.readiness.reset();
      }
    }
    PodView view{.hosts = HostsFile(), .prefix = fmt::format("[{}] ", HostOf(pod))};
    if (output_) {
      view.filters = output_->texts();
      view.filter_file = output_->FileOf(NameOf(pod));
    }
    MUSTER_ASSIGN_OR_RETURN(
        pods_[uid], PodRun::Start(means_, std::move(program), place, std::move(view), [weak = weak_from_this()] {
          if (auto self = weak.lock()) self->WakeSoon();
        }));
    begun_[uid] = MonotonicClock::now();
    if (world_->Update(std::move(spelled), WallNow()).ok()) WakeSoon();
    return absl::OkStatus();
  }

  void Seen(const std::string& text) {
    for (const Drill& drill : options_.drills) {
      if (!drill.after && drill.text == text) Carry(drill);
    }
  }

  void Carry(const Drill& drill) {
    const bool by_rank = drill.target == Drill::Target::kRank;
    const std::vector<std::string> entries =
        by_rank ? std::vector<std::string>{fmt::format("RANK={}", drill.number)} : std::vector<std::string>();
    for (const Json* pod : world_->List("Pod")) {
      const auto run = pods_.find(UidOf(*pod));
      if (run == pods_.end() || (!by_rank && NodeRankOf(*pod) != drill.number)) continue;
      for (const char* container : {kTrainerContainer, kPyTorchContainer}) {
        if (run->second->Signal(container, drill.signal, entries)) {
          return events_.drill(fmt::format("{}: {} to {} {} on {}", drill.said, SignalName(drill.signal),
                                           by_rank ? "rank" : "node", drill.number, NameOf(*pod)));
        }
      }
    }
    events_.drill(fmt::format("{}: nothing of that number runs", drill.said));
  }

  // Those whose pods are gone, and that have ended.
  void Forget() {
    std::set<std::string> there;
    for (const Json* pod : world_->List("Pod")) there.insert(UidOf(*pod));
    for (auto& [uid, run] : pods_) {
      if (!there.contains(uid) && !run->over()) run->Kill();
    }
    std::erase_if(pods_, [&there](const auto& pod) { return !there.contains(pod.first) && pod.second->over(); });
  }

  std::string HostsFile() const { return options_.folder + "/hosts"; }

  // The same file, since containers have it mounted.
  void WriteHosts() {
    const std::string text = hosts_.FileOf(world_->List("Pod"), world_->List("Service"));
    if (text == written_) return;
    std::ofstream file(HostsFile(), std::ios::trunc);
    file << text << std::flush;
    if (!file) Once(fmt::format("{}: it cannot be written", HostsFile()), events_.trouble);
    written_ = text;
  }

  void EndIfOver() {
    if (!stopped_ && !job_->State().finished) return;
    for (const auto& [uid, pod] : pods_) {
      if (!pod->over()) return;
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

  void Once(const std::string& text, const std::function<void(const std::string&)>& say) {
    if (said_.insert(text).second) say(text);
  }

  const PodMeans means_;
  World* const world_;
  LocalJob* const job_;
  const LocalRunOptions options_;
  const LocalRunEvents events_;
  Controllers controllers_;
  PodNames hosts_;
  asio::steady_timer timer_;
  const HostFacts facts_;
  std::unique_ptr<OutputWatch> output_;
  std::vector<std::unique_ptr<asio::steady_timer>> drill_timers_;
  std::map<std::string, std::unique_ptr<PodRun>> pods_;  // by uid
  std::map<std::string, TimePoint> begun_;               // by uid
  std::set<std::string> ended_;                          // uids
  std::vector<PodEnd> ends_;
  std::set<std::string> said_;
  std::string written_;
  bool woken_ = false, stopped_ = false, over_ = false;
};

LocalRun::LocalRun(PodMeans means, World* world, LocalJob* job, LocalRunOptions options, LocalRunEvents events)
    : impl_(std::make_shared<Impl>(means, world, job, std::move(options), std::move(events))) {}
LocalRun::~LocalRun() { impl_->End(); }
Status LocalRun::Begin() { return impl_->Begin(); }
void LocalRun::Stop() { impl_->Stop(); }
const std::vector<PodEnd>& LocalRun::ends() const { return impl_->ends(); }

}  // namespace muster::controller
