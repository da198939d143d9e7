// SPDX-License-Identifier: Apache-2.0
// MPI: the numbers of pods, the hostfile, the launcher's variables, and the remote shell.
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct MpiParts {
  std::string policy = "{mpi: {runLauncherAsNode: true}}";
  std::string node = "{command: [/usr/sbin/sshd, -De]}", launcher = "{command: [mpirun, solve]}";
  std::string node_pod = "{}", node_labels = "{}";
  std::string annotations = "{}";
};

Runtime MpiRuntime(const MpiParts& parts = {}) {
  Json jobs = Json::array();
  for (const auto& [name, container, pod, labels] :
       std::vector<std::tuple<std::string, std::string, std::string, std::string>>{
           {"node", parts.node, parts.node_pod, parts.node_labels},
           {"launcher", parts.launcher, "{}", "{trainer.kubeflow.org/trainjob-ancestor-step: trainer}"}}) {
    if (container.empty()) continue;
    Json one = YamlOf(container), spec = YamlOf(pod), job = {{"name", name}};
    one["name"] = "node";
    one["image"] = "image:1";
    spec["containers"] = Json::array({one});
    job["template"]["metadata"]["labels"] = YamlOf(labels);
    job["template"]["spec"]["template"]["spec"] = spec;
    jobs.push_back(job);
  }
  Json spec = {{"mlPolicy", YamlOf(parts.policy)}, {"template", {{"spec", {{"replicatedJobs", jobs}}}}}};
  return RuntimeWith(WriteYaml(spec), parts.annotations);
}

std::string HostsOf(const TrainJobPlan& plan) {
  for (const PlannedObject& each : plan.objects) {
    if (TextField(each.object, "kind") == "ConfigMap") return TextField(At(each.object, "/data"), "hostfile");
  }
  return "none";
}

std::vector<std::string> KindsOf(const TrainJobPlan& plan) {
  std::vector<std::string> kinds;
  for (const PlannedObject& each : plan.objects) {
    kinds.push_back(TextField(each.object, "kind") + " " + TextField(At(each.object, "/metadata"), "name"));
  }
  return kinds;
}

std::string CommandOf(const PlannedJob& job) { return WriteJson(At(ContainerOf(job), "/command")); }

TEST(Mpi, TheHostFileListsThePodsThatTrain) {
  struct Row {
    std::string trainer, policy;
    int nodes, launchers;
    std::string hosts;
  };
  const std::string as_node = "{mpi: {runLauncherAsNode: true}}", beside = "{numNodes: 2, mpi: {}}";
  const std::string n0 = "train-node-0-0.train", n1 = "train-node-0-1.train", own = "train-launcher-0-0.train";
  for (const Row& row : std::vector<Row>{
           {"{}", as_node, 0, 1, own + " slots=1\n"},
           {"{trainer: {numNodes: 1, numProcPerNode: 4}}", as_node, 0, 1, own + " slots=4\n"},
           {"{trainer: {numNodes: 3}}", as_node, 2, 1, n0 + " slots=1\n" + n1 + " slots=1\n" + own + " slots=1\n"},
           {"{}", "{numNodes: 2, mpi: {runLauncherAsNode: true, numProcPerNode: 2}}", 1, 1,
            n0 + " slots=2\n" + own + " slots=2\n"},
           {"{}", beside, 2, 1, n0 + " slots=1\n" + n1 + " slots=1\n"},
           {"{trainer: {numNodes: 1}}", beside, 1, 1, n0 + " slots=1\n"},
           {"{}", "{mpi: {mpiImplementation: Intel, numProcPerNode: 3}}", 1, 1, n0 + ":3\n"},
           {"{}", "{mpi: {mpiImplementation: MPICH}}", 1, 1, n0 + ":1\n"},
       }) {
    SCOPED_TRACE(row.trainer + row.policy);
    const TrainJobPlan plan = PlanOf(JobWith(row.trainer), MpiRuntime({.policy = row.policy}));
    EXPECT_EQ(JobNamed(plan, "node").pods, row.nodes);
    EXPECT_EQ(At(JobNamed(plan, "node").Object(), "/spec/completions"), row.nodes);
    EXPECT_EQ(At(JobNamed(plan, "node").Object(), "/spec/parallelism"), row.nodes);
    EXPECT_EQ(JobNamed(plan, "launcher").pods, row.launchers);
    EXPECT_TRUE(JobNamed(plan, "node").are_nodes);
    EXPECT_EQ(HostsOf(plan), row.hosts);
  }
}

TEST(Mpi, SlotsAreProcessesOrGpus) {
  struct Row {
    std::string trainer, annotations, policy, node, slots;
  };
  const std::string none = "{}", gpus = "{resources: {limits: {nvidia.com/gpu: 8}}}";
  for (const Row& row : std::vector<Row>{
           {"{numProcPerNode: 2}", "{muster.dev/num-proc-per-node: \"3\"}", "{mpi: {numProcPerNode: 4}}", gpus, "2"},
           {"{image: i}", "{muster.dev/num-proc-per-node: \"3\"}", "{mpi: {numProcPerNode: 4}}", gpus, "3"},
           {"{image: i}", none, "{mpi: {numProcPerNode: 4}}", gpus, "4"},
           {"{image: i}", none, "{mpi: {numProcPerNode: 1}}", gpus, "8"},
           {"{image: i}", none, "{mpi: {}}", gpus, "8"},
           {"{image: i}", none, "{mpi: {}}",
            "{resources: {limits: {nvidia.com/gpu: 2, nvidia.com/gpumem: 8192, nvidia.com/gpucores: 50}}}", "2"},
           {"{image: i}", none, "{mpi: {}}",
            "{resources: {limits: {volcano.sh/vgpu-number: 4, volcano.sh/vgpu-memory: 3000}}}", "4"},
           {"{image: i}", none, "{mpi: {}}", "{resources: {limits: {aliyun.com/gpu-mem: 30}}}", "1"},
           {"{image: i}", none, "{mpi: {}}",
            "{resources: {limits: {gpu.intel.com/i915: 2, gpu.intel.com/millicores: 500}}}", "2"},
           {"{image: i}", none, "{mpi: {}}", none, "1"},
           // Resources of the runtime and the job, merged.
           {"{resourcesPerNode: {requests: {cpu: 3}}}", none, "{mpi: {}}", gpus, "8"},
           {"{resourcesPerNode: {limits: {nvidia.com/gpu: 2}}}", none, "{mpi: {}}", none, "2"},
       }) {
    SCOPED_TRACE(row.trainer + row.annotations + row.policy + row.node);
    EXPECT_EQ(HostsOf(PlanOf(JobWith("{trainer: " + row.trainer + "}", row.annotations),
                             MpiRuntime({.policy = row.policy, .node = row.node}))),
              "train-node-0-0.train slots=" + row.slots + "\n");
  }
}

TEST(Mpi, AgentsAreTheRemoteShell) {
  const TrainJobPlan plan = PlanOf(
      JobWith("{trainer: {numNodes: 3}}"),
      MpiRuntime({.node = "{command: [/usr/sbin/sshd, -De], args: [x], readinessProbe: {tcpSocket: {port: 2222}}}"}));
  EXPECT_TRUE(plan.notices.empty());
  EXPECT_THAT(KindsOf(plan), ElementsAre("ConfigMap train-mpi-hostfile", "Secret train-token-uid-1"));
  EXPECT_EQ(plan.objects[0].if_there, PlannedObject::IfThere::kUpdate);
  const PlannedJob& node = JobNamed(plan, "node");
  const PlannedJob& launcher = JobNamed(plan, "launcher");
  EXPECT_EQ(CommandOf(node), R"(["/muster-agent/muster","exec","--serve-rsh"])");
  EXPECT_TRUE(At(ContainerOf(node), "/args").is_null());
  EXPECT_EQ(At(ContainerOf(node), "/readinessProbe/httpGet"), YamlOf("{path: /readyz, port: 29480}"));
  EXPECT_EQ(
      CommandOf(launcher),
      R"x(["/muster-agent/muster","exec","--wire=mpi","--max-restarts=$(PET_MAX_RESTARTS)","--","mpirun","solve"])x");
  for (const PlannedJob* job : {&node, &launcher}) {
    EXPECT_TRUE(job->agent);
    EXPECT_TRUE(job->budget_in_job);
    EXPECT_EQ(At(job->Object(), "/spec/backoffLimit"), kDefaultMaxRestarts);
    EXPECT_EQ(EnvOf(ContainerOf(*job), "MUSTER_TOKEN_FILE"), "/muster-token/token");
  }
  EXPECT_EQ(EnvOf(ContainerOf(node), "PET_MAX_RESTARTS"), "-");
  EXPECT_EQ(EnvOf(ContainerOf(launcher), "PET_MAX_RESTARTS"), "6");
  EXPECT_EQ(EnvOf(ContainerOf(node), "MUSTER_MPI_HOSTS"), "-");
  EXPECT_EQ(EnvOf(ContainerOf(launcher), "MUSTER_MPI_HOSTS"), "/etc/mpi/hostfile");
  const Json pod = At(launcher.Object(), "/spec/template/spec");
  EXPECT_EQ(At(pod, "/volumes/0"), YamlOf("{name: mpi-hostfile, configMap: {name: train-mpi-hostfile, "
                                          "items: [{key: hostfile, path: hostfile, mode: 292}]}}"));
  EXPECT_EQ(At(ContainerOf(launcher), "/volumeMounts/0"), YamlOf("{name: mpi-hostfile, mountPath: /etc/mpi}"));
}

TEST(Mpi, AJobOfOneNodeNeedsNoToken) {
  for (const char* node : {"{}", ""}) {
    SCOPED_TRACE(node);
    const TrainJobPlan plan = PlanOf(JobWith(), MpiRuntime({.node = node}));
    EXPECT_THAT(KindsOf(plan), ElementsAre("ConfigMap train-mpi-hostfile"));
    EXPECT_EQ(HostsOf(plan), "train-launcher-0-0.train slots=1\n");
  }
}

TEST(Mpi, TheLauncherKnowsItsHosts) {
  using Variables = std::vector<std::pair<std::string, std::string>>;
  const std::string file = "/etc/mpi/hostfile", patience = "-o ConnectionAttempts=10";
  for (const auto& [implementation, variables] : std::vector<std::pair<std::string, Variables>>{
           {"OpenMPI",
            {{"OMPI_MCA_orte_default_hostfile", file},
             {"OMPI_MCA_orte_keep_fqdn_hostnames", "true"},
             {"OMPI_MCA_orte_set_default_slots", "2"},
             {"OMPI_MCA_plm_rsh_args", patience},
             {"PRTE_MCA_prte_default_hostfile", file},
             {"PRTE_MCA_prte_keep_fqdn_hostnames", "true"},
             {"PRTE_MCA_prte_set_default_slots", "2"},
             {"PRTE_MCA_plm_ssh_args", patience},
             {"HYDRA_HOST_FILE", "-"}}},
           {"Intel",
            {{"I_MPI_HYDRA_HOST_FILE", file},
             {"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", patience},
             {"I_MPI_PERHOST", "2"},
             {"OMPI_MCA_orte_default_hostfile", "-"}}},
           {"MPICH", {{"HYDRA_HOST_FILE", file}, {"HYDRA_LAUNCH_EXTRA_ARGS", patience}, {"I_MPI_PERHOST", "-"}}}}) {
    SCOPED_TRACE(implementation);
    const TrainJobPlan plan =
        PlanOf(JobWith("{trainer: {numProcPerNode: 2}}"),
               MpiRuntime({.policy = "{mpi: {mpiImplementation: " + implementation + "}}",
                           .launcher = "{command: [mpirun], env: [{name: HYDRA_LAUNCH_EXTRA_ARGS, value: \"" +
                                       (implementation == "MPICH" ? patience : "-v") + "\"}]}"}));
    for (const auto& [name, value] : variables) {
      EXPECT_EQ(EnvOf(ContainerOf(JobNamed(plan, "launcher")), name), value) << name;
    }
  }
}

TEST(Mpi, TheTrainerReachesTheNodesToo) {
  for (const char* labels : {"{}", "{trainer.kubeflow.org/trainjob-ancestor-step: trainer}"}) {
    SCOPED_TRACE(labels);
    const TrainJobPlan plan = PlanOf(JobWith(R"({trainer: {image: "own:2", command: [mpirun, own], args: [x],
        env: [{name: A, value: a}], resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}})"),
                                     MpiRuntime({.node_labels = labels}));
    for (const char* name : {"node", "launcher"}) {
      const Json container = ContainerOf(JobNamed(plan, name));
      EXPECT_EQ(At(container, "/image"), "own:2");
      EXPECT_EQ(EnvOf(container, "A"), "a");
      EXPECT_EQ(At(container, "/resources/limits"), YamlOf("{nvidia.com/gpu: 4}"));
    }
    EXPECT_EQ(CommandOf(JobNamed(plan, "node")), R"(["/muster-agent/muster","exec","--serve-rsh"])");
    EXPECT_THAT(CommandOf(JobNamed(plan, "launcher")), HasSubstr(R"("--","mpirun","own"])"));
    EXPECT_EQ(JobNamed(plan, "node").step, Step::kOther);
  }
}

TEST(Mpi, TheRemoteShellIsMustersOrSsh) {
  struct Row {
    std::string name;
    MpiParts parts;
    std::string annotations;
    bool ssh;
    std::string notice;
  };
  const std::string agent = "{command: [/muster/bin/muster, exec, --serve-rsh]}";
  for (
      const Row& row : std::vector<Row>{
          {"sshd", {}, "{}", false, ""},
          {"no command", {.node = "{}"}, "{}", false, ""},
          {"a script that starts sshd", {.node = "{command: [sh, -c, exec /usr/sbin/sshd -D]}"}, "{}", false, ""},
          {"the agent", {.node = agent}, "{}", false, ""},
          {"an entrypoint that is given sshd", {.node = "{command: [/uid.sh, /usr/sbin/sshd, -De]}"}, "{}", false, ""},
          {"a command of its own", {.node = "{command: [/start.sh]}"}, "{}", true, "job 'node' may do more than start"},
          {"a script that does more",
           {.node =
                R"({command: [bash, -lc, "ssh-keygen -A\n/usr/sbin/sshd -f c\nwhile [ ! -f done ]; do sleep 2; done"]})"},
           "{}",
           true,
           "job 'node' may do more than start"},
          {"a launcher that waits by ssh",
           {.launcher = R"({command: [bash, -c, "until ssh $HOST true; do sleep 2; done; mpirun solve"]})"},
           "{}",
           true,
           "the command of job 'launcher' calls ssh itself"},
          {"it is to go", {.node = "{command: [/start.sh]}"}, "{muster.dev/rsh: muster}", false, ""},
          {"an init container that copies the keys",
           {.node_pod =
                "{initContainers: [{name: keys, image: i, volumeMounts: [{name: mpi-ssh-auth, mountPath: /k}]}]}"},
           "{}",
           true,
           "a container of job 'node' mounts ssh's keys"},
          {"no mpirun", {.launcher = "{}"}, "{}", true, "the command of job 'launcher' is in its image alone"},
          {"another shell",
           {.launcher = "{command: [mpirun], env: [{name: OMPI_MCA_plm_rsh_agent, value: ssh}]}"},
           "{}",
           true,
           "OMPI_MCA_plm_rsh_agent names a remote shell already"},
          {"by the job", {}, "{muster.dev/rsh: ssh}", true, ""},
          {"by the runtime", {.annotations = "{muster.dev/rsh: ssh}"}, "{}", true, ""},
          {"the job's word", {.annotations = "{muster.dev/rsh: ssh}"}, "{muster.dev/rsh: muster}", false, ""},
          {"without the agent", {}, "{muster.dev/agent: \"off\"}", true, ""},
          {"without it, whatever is asked", {}, "{muster.dev/agent: \"off\", muster.dev/rsh: muster}", true, ""},
      }) {
    SCOPED_TRACE(row.name);
    const TrainJobPlan plan = PlanOf(JobWith("{trainer: {numNodes: 2}}", row.annotations), MpiRuntime(row.parts));
    EXPECT_THAT(KindsOf(plan), ElementsAre("ConfigMap train-mpi-hostfile",
                                           row.ssh ? "Secret train-mpi-ssh-auth-uid-1" : "Secret train-token-uid-1"));
    EXPECT_EQ(JobNamed(plan, "node").agent, !row.ssh);
    EXPECT_EQ(EnvOf(ContainerOf(JobNamed(plan, "launcher")), "MUSTER_MPI_HOSTS"), row.ssh ? "-" : "/etc/mpi/hostfile");
    std::string said;
    for (const Notice& notice : plan.notices) said += notice.message;
    EXPECT_THAT(said, HasSubstr(row.notice));
  }
}

TEST(Mpi, SshHasItsKeys) {
  const TrainJobPlan plan =
      PlanOf(JobWith("{trainer: {numNodes: 2}}", "{muster.dev/rsh: ssh}"),
             MpiRuntime({.node = "{command: [/usr/sbin/sshd], readinessProbe: {tcpSocket: {port: 2222}}}",
                         .node_pod = "{securityContext: {runAsUser: 1000, fsGroup: 1000}}"}));
  EXPECT_EQ(plan.objects[1].fill, PlannedObject::Fill::kSshKeys);
  EXPECT_EQ(plan.objects[1].if_there, PlannedObject::IfThere::kUse);
  EXPECT_EQ(At(plan.objects[1].object, "/type"), "kubernetes.io/ssh-auth");
  const PlannedJob& node = JobNamed(plan, "node");
  EXPECT_EQ(CommandOf(node), R"(["/usr/sbin/sshd"])");
  EXPECT_EQ(At(ContainerOf(node), "/readinessProbe/tcpSocket/port"), 2222);
  EXPECT_EQ(At(ContainerOf(node), "/volumeMounts/0"), YamlOf("{name: mpi-ssh-auth, mountPath: /root/.ssh}"));
  EXPECT_EQ(At(node.Object(), "/spec/template/spec/volumes/0/secret"), YamlOf(R"(
secretName: train-mpi-ssh-auth-uid-1
defaultMode: 256
items: [{key: ssh-privatekey, path: id_rsa, mode: 416}, {key: ssh-publickey, path: id_rsa.pub, mode: 420},
        {key: ssh-publickey, path: authorized_keys, mode: 420}])"));
  // mpirun itself runs under the agent.
  EXPECT_EQ(CommandOf(JobNamed(plan, "launcher")), R"(["/muster-agent/muster","exec","--","mpirun","solve"])");
}

TEST(Mpi, ModesOfTheKeyThatSshTakes) {
  struct Row {
    std::string path, pod, container;
    int mode;
  };
  for (const Row& row : std::vector<Row>{
           {"/root/.ssh", "{}", "{}", 0600},
           {"/home/a/.ssh", "{securityContext: {runAsUser: 0}}", "{}", 0600},
           {"/root/.ssh", "{}", "{securityContext: {runAsUser: 1}}", 0644},
           {"/home/a/.ssh", "{}", "{}", 0644},
           {"/home/a/.ssh", "{securityContext: {fsGroup: 1000, runAsUser: 0}}", "{securityContext: {runAsUser: 1}}",
            0640},
       }) {
    SCOPED_TRACE(row.path + row.pod + row.container);
    const TrainJobPlan plan = PlanOf(
        JobWith("{}", "{muster.dev/agent: \"off\"}"),
        MpiRuntime(
            {.policy = "{mpi: {sshAuthMountPath: " + row.path + "}}", .node = row.container, .node_pod = row.pod}));
    EXPECT_EQ(At(JobNamed(plan, "node").Object(), "/spec/template/spec/volumes/0/secret/items/0/mode"), row.mode);
  }
}

TEST(Mpi, OnePodCanBeBoth) {
  const TrainJobPlan plan =
      PlanOf(JobWith(), TrainerRuntime({.policy = "{mpi: {}}", .container = "{command: [mpirun]}"}));
  EXPECT_EQ(HostsOf(plan), "train-node-0-0.train slots=1\n");
  EXPECT_EQ(plan.jobs[0].pods, 1);
  EXPECT_THAT(CommandOf(plan.jobs[0]), HasSubstr("--wire=mpi"));
}

TEST(Mpi, WhatMpiCannotServeIsRefused) {
  struct Row {
    std::string spec, annotations;
    MpiParts parts;
    std::string message;
  };
  for (const Row& row : std::vector<Row>{
           {"{trainer: {numNodes: 2}}",
            "{}",
            {.node = ""},
            "spec.trainer.numNodes: 2: must have 1 when MPI trainingRuntime with enabled runLauncherAsNode does not "
            "have "
            "either launcher and node; runtime 'runtime' lacks the job 'node'"},
           {"{}",
            "{}",
            {.policy = "{numNodes: 3, mpi: {}}", .launcher = ""},
            "spec.mlPolicy.numNodes: 3: must have 1 when MPI trainingRuntime"},
           {"{trainer: {env: [{name: OMPI_MCA_plm_rsh_args, value: x}]}}",
            "{}",
            {},
            "spec.trainer.env: must not have reserved envs, invalid envs configured: [OMPI_MCA_plm_rsh_args]"},
           {"{}",
            "{muster.dev/rsh: telnet}",
            {},
            "metadata.annotations.muster.dev/rsh: 'telnet' is neither muster nor"},
           {"{}",
            "{}",
            {.annotations = "{muster.dev/rsh: telnet}"},
            "runtime 'runtime': metadata.annotations.muster.dev"},
           {"{}", "{muster.dev/num-proc-per-node: auto}", {}, "'auto' is not a whole number from 1 to 65536"},
       }) {
    SCOPED_TRACE(row.message);
    EXPECT_THAT(Refusal(JobWith(row.spec, row.annotations), MpiRuntime(row.parts)), HasSubstr(row.message));
  }
}

TEST(Mpi, OtherJobsKeepTheirPods) {
  Runtime runtime = MpiRuntime();
  const Runtime other = RuntimeWith(R"({template: {spec: {replicatedJobs: [
      {name: data, template: {spec: {template: {spec: {containers: [{name: data, image: i}]}}}}},
      {name: cache, template: {spec: {parallelism: 3, template: {spec: {containers: [{name: c, image: i}]}}}}}]}}})");
  runtime.jobs.insert(runtime.jobs.begin(), other.jobs.begin(), other.jobs.end());
  const TrainJobPlan plan = PlanOf(JobWith(), runtime);
  EXPECT_EQ(JobNamed(plan, "data").pods, 1);
  EXPECT_EQ(JobNamed(plan, "cache").pods, 3);
}

// As upstream: the volumes are there, and the containers stay as they are.
TEST(Mpi, PodsWithoutTheContainerNodeRunAsTheyAreWritten) {
  const Runtime runtime = RuntimeWith(R"({mlPolicy: {mpi: {}}, template: {spec: {replicatedJobs: [
      {name: launcher, template: {spec: {template: {spec: {containers: [{name: mpi, image: i, command: [run]}]}}}}},
      {name: worker, replicas: 2, template: {spec: {template: {spec: {containers: [{name: mpi, image: i}]}}}}}]}}})");
  const TrainJobPlan plan = PlanOf(JobWith(), runtime);
  ASSERT_EQ(plan.jobs.size(), 3);
  const Json pod = At(plan.jobs[0].Object(), "/spec/template/spec");
  EXPECT_EQ(WriteJson(At(pod, "/containers")), R"([{"command":["run"],"image":"i","name":"mpi"}])");
  EXPECT_EQ(At(pod, "/volumes/0/name"), "mpi-hostfile");
  EXPECT_EQ(At(pod, "/volumes/1/name"), "mpi-ssh-auth");
  ASSERT_EQ(plan.notices.size(), 1);
  EXPECT_EQ(plan.notices[0].message,
            "mpirun reaches the nodes by ssh, which their image must serve: job 'launcher' has no container 'node'; it "
            "has: mpi");
  EXPECT_THAT(Refusal(JobWith("{}", "{muster.dev/rsh: muster}"), runtime),
              HasSubstr("job 'launcher' has no container 'node'; it has: mpi; muster.dev/rsh needs it"));
}

}  // namespace
}  // namespace muster::controller
