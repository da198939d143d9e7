// SPDX-License-Identifier: Apache-2.0
// MPI: one launcher, the nodes in which its mpirun starts processes, and the hostfile. mpirun reaches the nodes through
// `muster rsh`, or by ssh if the image needs it. docs/mpi.md says how.
#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/limits.h"
#include "controller/api/reasons.h"
#include "controller/plan/choice.h"
#include "controller/plan/frameworks/framework.h"
#include "controller/plan/frameworks/mpi_commands.h"
#include "controller/plan/frameworks/mpi_ssh.h"
#include "controller/plan/names.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/resources.h"
#include "controller/plan/sizes.h"

namespace muster::controller {
namespace {

constexpr char kRshAnnotation[] = "muster.dev/rsh";  // on the TrainJob or the runtime: "muster" or "ssh"
constexpr char kHostsVolume[] = "mpi-hostfile", kHostsKey[] = "hostfile", kHostsFolder[] = "/etc/mpi";
constexpr int kEveryoneReads = 0444;
constexpr char kPatience[] = "-o ConnectionAttempts=10";  // for ssh; `muster rsh` waits anyway

class MpiDraft {
 public:
  explicit MpiDraft(Draft* draft) : draft_(*draft), policy_(draft->runtime.ml_policy.policy) {}

  Status Add() {
    MUSTER_RETURN_IF_ERROR(FindJobs());
    MUSTER_ASSIGN_OR_RETURN(slots_, Slots());
    CountPods();
    MUSTER_RETURN_IF_ERROR(CheckHosts());
    AddHosts();
    AddVariables();
    MUSTER_ASSIGN_OR_RETURN(const bool muster_rsh, UsesMusterRsh());
    if (muster_rsh) {
      UseMusterRsh();
    } else {
      UseSsh();
    }
    return absl::OkStatus();
  }

 private:
  Status Wrong(std::string_view what) const {
    return absl::InvalidArgumentError(fmt::format("runtime '{}': {}", draft_.runtime.meta.name, what));
  }

  Status FindJobs() {
    launcher_ = JobNamed(draft_, kMpiLauncher);
    nodes_ = JobNamed(draft_, kMpiNodes);
    launcher_is_node_ = FlagField(policy_, "runLauncherAsNode", false);
    const int count = draft_.nodes.pods;
    if ((launcher_ == nullptr || nodes_ == nullptr) && count > 1) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: {}: must have 1 when MPI trainingRuntime with enabled runLauncherAsNode does not have either "
          "launcher and node; runtime '{}' lacks the job '{}'",
          CountPath(), count, draft_.runtime.meta.name, launcher_ == nullptr ? kMpiLauncher : kMpiNodes));
    }
    if (launcher_ == nullptr) std::swap(launcher_, nodes_);  // one pod is both
    if (launcher_ == nullptr) {
      return Wrong(fmt::format("spec.mlPolicy.mpi: there is no job '{}'; mpirun runs in its pod", kMpiLauncher));
    }
    if (nodes_ == nullptr) launcher_is_node_ = true;
    return absl::OkStatus();
  }

  // Which job's pods lack the container `node`, as upstream allows: they run as they are written. Empty: none.
  std::string LackOfNode() const {
    for (ReplicatedJob* of : {launcher_, nodes_}) {
      if (of == nullptr || TrainerContainer(*of) != nullptr) continue;
      return fmt::format("job '{}' has no container '{}'; it has: {}", of->name, kTrainerContainer,
                         NamesIn(PodSpec(of->job_template), "containers"));
    }
    return "";
  }

  const char* CountPath() const {
    return draft_.job.trainer && draft_.job.trainer->num_nodes ? "spec.trainer.numNodes" : "spec.mlPolicy.numNodes";
  }

  // Slots of each host. The hosts are listed before their pods run, so a word such as "auto" does not do. A runtime's 1
  // is upstream's default: then the GPUs count.
  StatusOr<int> Slots() const {
    const SaidProcesses said = ProcessesSaid(draft_.job, draft_.runtime);
    if (!said.number && !said.text.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("metadata.annotations.{}: {} is not a whole number from 1 to {}: the hosts of an MPI job are "
                      "listed before its pods run; give spec.trainer.numProcPerNode as a number",
                      kNumProcAnnotation, Quoted(said.text), kMostProcesses));
    }
    if (said.number && (said.by_job || *said.number > 1)) return *said.number;
    const Json* container = TrainerContainer(nodes_ == nullptr ? *launcher_ : *nodes_);
    return container == nullptr ? 1 : static_cast<int>(std::max<int64_t>(1, GpusOf(PartOf(*container, "resources"))));
  }

  void CountPods() {
    draft_.pods[launcher_->name] = 1;
    if (nodes_ == nullptr) return;
    draft_.pods[nodes_->name] = launcher_is_node_ ? std::max(0, draft_.nodes.pods - 1) : draft_.nodes.pods;
  }

  bool IsOpenMpi() const {
    const std::string said = TextField(policy_, "mpiImplementation");
    return said.empty() || said == "OpenMPI";
  }

  bool HasHosts(const ReplicatedJob& of) const { return &of == nodes_ || (&of == launcher_ && launcher_is_node_); }

  std::string HostLine(const ReplicatedJob& of, int index, int pod) const {
    return fmt::format("{}-{}.{}{}{}\n", JobName(draft_.job.meta.name, of.name, index), pod, draft_.subdomain,
                       IsOpenMpi() ? " slots=" : ":", slots_);
  }

  // A ConfigMap holds 1 MiB. Counts each line as long as the longest one.
  Status CheckHosts() {
    int64_t bytes = 0, longest = 1;
    for (const ReplicatedJob& of : draft_.jobs) {
      if (!HasHosts(of)) continue;
      const int pods = draft_.pods.at(of.name);
      if (of.replicas == 0 || pods == 0) continue;
      const auto line = static_cast<int64_t>(HostLine(of, of.replicas - 1, pods - 1).size());
      longest = std::max(longest, line);
      bytes += line * of.replicas * pods;
    }
    if (bytes <= kMostDataBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("{}: {}: the list of the hosts would have {} bytes, and a ConfigMap holds {}: with hosts of this "
                    "length, {} nodes at most; use fewer, with more processes on each, or a shorter metadata.name",
                    CountPath(), draft_.nodes.pods, bytes, kMostDataBytes, kMostDataBytes / longest));
  }

  // The ConfigMap <job>-mpi-hostfile, mounted in the launcher's pod. The hosts are in the runtime's order, as upstream.
  void AddHosts() {
    std::string hosts;
    for (const ReplicatedJob& of : draft_.jobs) {
      if (!HasHosts(of)) continue;
      for (int index = 0; index < of.replicas; ++index) {
        for (int pod = 0; pod < draft_.pods.at(of.name); ++pod) hosts += HostLine(of, index, pod);
      }
    }
    const std::string name = fmt::format("{}-{}", draft_.job.meta.name, kHostsVolume);
    PlannedObject planned;
    planned.object = {
        {"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", name}}}, {"data", {{kHostsKey, hosts}}}};
    planned.if_there = PlannedObject::IfThere::kUpdate;
    draft_.objects.push_back(std::move(planned));
    const Json item = {{"key", kHostsKey}, {"path", kHostsKey}, {"mode", kEveryoneReads}};
    MountVolume(kHostsVolume, {{"configMap", {{"name", name}, {"items", Json::array({item})}}}}, kHostsFolder,
                MountMode::kWritable, &PodSpec(launcher_->job_template), TrainerContainer(*launcher_));
  }

  void AddVariables() {
    const std::string file = fmt::format("{}/{}", kHostsFolder, kHostsKey), slots = fmt::format("{}", slots_);
    const std::string implementation = TextField(policy_, "mpiImplementation");
    Json* container = TrainerContainer(*launcher_);
    if (container == nullptr) return;
    if (implementation == "Intel") {
      return AddMissingEnv(
          {EnvValue("I_MPI_HYDRA_HOST_FILE", file), EnvValue("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", kPatience),
           EnvValue("I_MPI_PERHOST", slots)},
          container);
    }
    if (implementation == "MPICH") {
      return AddMissingEnv({EnvValue("HYDRA_HOST_FILE", file), EnvValue("HYDRA_LAUNCH_EXTRA_ARGS", kPatience)},
                           container);
    }
    // Open MPI 5 reads new names. A runtime that was written without Muster may set them itself; its values stay.
    AddMissingEnv(
        {EnvValue("PRTE_MCA_prte_default_hostfile", file), EnvValue("PRTE_MCA_prte_keep_fqdn_hostnames", "true"),
         EnvValue("PRTE_MCA_prte_set_default_slots", slots), EnvValue("PRTE_MCA_plm_ssh_args", kPatience)},
        container);
    UpsertEnvFirst(
        Json::array({EnvValue("OMPI_MCA_orte_default_hostfile", file),
                     EnvValue("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
                     EnvValue("OMPI_MCA_orte_set_default_slots", slots), EnvValue("OMPI_MCA_plm_rsh_args", kPatience)}),
        container);
  }

  // Without the annotation: why mpirun has to use ssh; empty: it can use `muster rsh`.
  std::string NeedOfSsh() {
    if (launcher_->step != Step::kTrainer) {
      return fmt::format("job '{}' has no label {}: trainer, so it runs as it is written", launcher_->name,
                         kAncestorLabel);
    }
    for (ReplicatedJob* of : {launcher_, nodes_}) {
      if (of != nullptr && MountsSshKeys(PodSpec(of->job_template))) {
        return fmt::format("a container of job '{}' mounts ssh's keys; leave that out", of->name);
      }
    }
    const Json& container = *TrainerContainer(*launcher_);
    if (!CommandIsKnown(container)) {
      return fmt::format("the command of job '{}' is in its image alone; give spec.trainer.command", launcher_->name);
    }
    for (const char* name : {"OMPI_MCA_plm_rsh_agent", "HYDRA_LAUNCHER", "I_MPI_HYDRA_BOOTSTRAP"}) {
      if (FindNamed(container, "env", name) != nullptr) return fmt::format("{} names a remote shell already", name);
    }
    if (CallsSsh(container))
      return fmt::format("the command of job '{}' calls ssh itself, or gives it options", launcher_->name);
    if (nodes_ == nullptr) return "";
    const Json& serving = *TrainerContainer(*nodes_);
    if (ListField(serving, "command").empty() && ListField(serving, "args").empty()) return "";
    if (IsAgent(serving) || OnlyServesSsh(serving)) return "";
    return fmt::format("the command of job '{}' may do more than start sshd; leave the command out", nodes_->name);
  }

  StatusOr<bool> UsesMusterRsh() {
    MUSTER_ASSIGN_OR_RETURN(const bool wants_agent, WantsAgent(draft_.job, draft_.runtime));
    MUSTER_ASSIGN_OR_RETURN(const std::string_view choice,
                            ChoiceOf(draft_.job, draft_.runtime, kRshAnnotation, "muster", "ssh"));
    if (!wants_agent || choice == "ssh") return false;
    const std::string lack = LackOfNode();
    if (choice == "muster") {
      return lack.empty() ? StatusOr<bool>(true) : Wrong(fmt::format("{}; {} needs it", lack, kRshAnnotation));
    }
    const std::string why = lack.empty() ? NeedOfSsh() : lack;
    if (why.empty()) return true;
    const std::string remedy = lack.empty() ? fmt::format("; or annotate {}: muster", kRshAnnotation) : "";
    draft_.notices.push_back(
        {reason::kSshKept,
         fmt::format("mpirun reaches the nodes by ssh, which their image must serve: {}{}", why, remedy)});
    return false;
  }

  void UseMusterRsh() {
    AddMissingEnv(Json::array({EnvValue("MUSTER_MPI_HOSTS", fmt::format("{}/{}", kHostsFolder, kHostsKey))}),
                  TrainerContainer(*launcher_));
    // The kubelet fills in the number. Without the flag, only a new pod would restart a failed mpirun.
    draft_.agents[launcher_->name] = {
        .flags = {"--wire=mpi", fmt::format("--max-restarts=$({})", kMaxRestartsVariable)}};
    if (nodes_ == nullptr) return;
    draft_.agents_meet = draft_.pods.at(nodes_->name) > 0;
    Json* container = TrainerContainer(*nodes_);
    const bool replaces = !IsAgent(*container);
    // The probes were written for the program that the agent replaces.
    for (const char* probe : {"readinessProbe", "livenessProbe", "startupProbe"}) {
      if (replaces) container->erase(probe);
    }
    draft_.agents[nodes_->name] = {.flags = {"--serve-rsh"}, .replaces = replaces};
  }

  void UseSsh() {
    std::string path = TextField(policy_, "sshAuthMountPath");
    if (path.empty()) path = kSshFolderOfRoot;
    for (ReplicatedJob* of : {launcher_, nodes_}) {
      if (of != nullptr) MountSshKeys(draft_.job, path, of);
    }
    draft_.objects.push_back(SshSecret(draft_.job));
  }

  Draft& draft_;
  const Json& policy_;
  ReplicatedJob* launcher_ = nullptr;
  ReplicatedJob* nodes_ = nullptr;  // null: the launcher's pod is the only one
  bool launcher_is_node_ = false;
  int slots_ = 1;
};

}  // namespace

Status AddMpi(Draft* draft) { return MpiDraft(draft).Add(); }

}  // namespace muster::controller
