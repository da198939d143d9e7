// SPDX-License-Identifier: Apache-2.0
// A whole job in memory: plan, world, controllers, and the lives of its pods. Only the processes are simulated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/plan/plan_files.h"
#include "local/cluster/controllers.h"
#include "local/pod/lifecycle.h"

namespace muster::local {

using namespace controller;

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kRuntime[] = R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: dataset-initializer
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
          spec: {template: {spec: {containers: [{name: dataset-initializer, image: muster-initializer}]}}}
      - name: node
        dependsOn: [{name: dataset-initializer, status: Complete}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: torch, command: [torchrun, a.py]}]}}}
)";
constexpr char kTrainJob[] = R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: digits, namespace: here}
spec: {runtimeRef: {name: torch}, initializer: {dataset: {storageUri: "s3://bucket/digits"}}}
)";
constexpr char kPyTorchJob[] = R"(
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: digits, namespace: here}
spec:
  runPolicy: {backoffLimit: 2}
  pytorchReplicaSpecs:
    Master: {replicas: 1, restartPolicy: ExitCode, template: {spec: {containers: [{name: pytorch, image: i, command: [a]}]}}}
    Worker: {replicas: 1, restartPolicy: ExitCode, template: {spec: {containers: [{name: pytorch, image: i, command: [a]}]}}}
)";

// A job whose init containers succeed at once, and whose other containers run until the test ends them.
class Played {
 public:
  explicit Played(const std::vector<InputFile>& files) {
    const auto planned = PlanFiles(files, {});
    if (!planned.ok()) ADD_FAILURE() << Message(planned.status());
    auto begun = planned->jobs.empty() ? BeginPyTorchJob(planned->pytorch_jobs.at(0), {}, now_, &world_)
                                       : BeginTrainJob(planned->jobs.at(0), {}, now_, &world_);
    if (!begun.ok()) ADD_FAILURE() << Message(begun.status());
    job_ = *std::move(begun);
    controllers_ = std::make_unique<Controllers>(&world_, job_.get());
    Settle();
  }

  // Runs controllers and pods until nothing changes.
  void Settle() {
    for (uint64_t before = 0; before != world_.version();) {
      before = world_.version();
      const Controllers::Settled settled = controllers_->Settle(now_);
      EXPECT_THAT(settled.troubles, IsEmpty());
      for (const Json* pod : std::vector<const Json*>(world_.List("Pod"))) Run(*pod);
    }
  }

  void Wait(std::chrono::seconds time) {
    now_ += time;
    Settle();
  }

  // Ends the containers of the pods with this prefix, with this code. Returns the number of these pods.
  int End(std::string_view prefix, int code) {
    int ended = 0;
    for (const Json* pod : std::vector<const Json*>(world_.List("Pod"))) {
      const std::string name = TextField((*pod)["metadata"], "name");
      Life& life = lives_.at(TextField((*pod)["metadata"], "uid"));
      if (!name.starts_with(prefix) || life.cycle->over()) continue;
      ++ended;
      for (size_t i = 0; i < life.cycle->size(); ++i) {
        if (life.cycle->IsRunning(i)) life.cycle->Ended(i, {.exit_code = code}, now_);
      }
      Tell(*pod, &life);
    }
    Settle();
    return ended;
  }

  std::vector<std::string> Running() const {
    std::vector<std::string> hosts;
    for (const Json* pod : world_.List("Pod")) {
      if (TextField(PartOf(*pod, "status"), "phase") != "Running") continue;
      const std::string host = TextField(PartOf(*pod, "spec"), "hostname");
      hosts.push_back(host.empty() ? TextField((*pod)["metadata"], "name") : host);
    }
    return hosts;
  }

  LocalJobState State() const { return job_->State(); }

 private:
  struct Life {
    PodProgram program;
    std::unique_ptr<PodLifecycle> cycle;
  };

  void Run(const Json& pod) {
    const Json& metadata = pod["metadata"];
    auto [at, is_new] = lives_.try_emplace(TextField(metadata, "uid"));
    Life& life = at->second;
    if (is_new) {
      for (const Json& container : ListField(pod["spec"], "initContainers")) {
        life.program.init_containers.push_back({.name = TextField(container, "name")});
      }
      for (const Json& container : ListField(pod["spec"], "containers")) {
        life.program.containers.push_back({.name = TextField(container, "name")});
      }
      life.cycle = std::make_unique<PodLifecycle>(life.program, "127.0.0.2", now_);
    }
    if (FindField(metadata, "deletionTimestamp") != nullptr) life.cycle->Stop();
    for (PodLifecycle::Step step = life.cycle->Next(now_); !step.start.empty() || !step.stop.empty();
         step = life.cycle->Next(now_)) {
      for (const size_t i : step.start) {
        life.cycle->Started(i, now_);
        if (i < life.program.init_containers.size()) life.cycle->Ended(i, {}, now_);
      }
      for (const size_t i : step.stop) life.cycle->Ended(i, {.exit_code = 143}, now_);
    }
    Tell(pod, &life);
  }

  void Tell(const Json& pod, Life* life) {
    Json told = pod;
    told["status"] = life->cycle->Status(PartOf(pod, "status"), now_);
    EXPECT_TRUE(world_.Update(std::move(told), now_).ok());
  }

  WallTime now_ = WallTime(std::chrono::hours(1'000'000));
  World world_;
  std::unique_ptr<LocalJob> job_;
  std::unique_ptr<Controllers> controllers_;
  std::map<std::string, Life> lives_;  // by uid
};

std::vector<InputFile> TrainJobFiles() { return {{"runtime.yaml", kRuntime}, {"job.yaml", kTrainJob}}; }

TEST(LocalLife, InitializersThenNodesThenTheEnd) {
  Played run(TrainJobFiles());
  EXPECT_THAT(run.Running(), ElementsAre("digits-dataset-initializer-0-0"));
  EXPECT_EQ(run.State().state, "Initializing");
  EXPECT_EQ(run.End("digits-dataset-initializer", 0), 1);
  EXPECT_THAT(run.Running(), ElementsAre("digits-node-0-0", "digits-node-0-1"));
  EXPECT_EQ(run.State().state, "Running");
  EXPECT_EQ(run.End("digits-node-0", 0), 2);
  EXPECT_TRUE(run.State().succeeded);
  EXPECT_EQ(run.State().state, "Complete");
}

TEST(LocalLife, ARetryableEndIsReplacedAndAFatalOneEndsTheJob) {
  Played run(TrainJobFiles());
  run.End("digits-dataset-initializer", 0);
  run.Wait(std::chrono::seconds(100));
  EXPECT_EQ(run.End("digits-node-0-1", 137), 1);
  run.Wait(std::chrono::seconds(100));
  EXPECT_THAT(run.Running(), ElementsAre("digits-node-0-0", "digits-node-0-1"));
  EXPECT_EQ(run.State().restarts, 1);
  EXPECT_EQ(run.End("digits-node-0-0", 3), 1);
  run.Wait(std::chrono::seconds(1));
  EXPECT_TRUE(run.State().finished);
  EXPECT_FALSE(run.State().succeeded);
  EXPECT_EQ(run.State().failures.back().exit_code, 3);
  EXPECT_THAT(run.State().message, HasSubstr("exit code 3"));
  EXPECT_THAT(run.Running(), IsEmpty());
}

TEST(LocalLife, APyTorchJobReplacesAWorkerAndSucceeds) {
  Played run(std::vector<InputFile>{{"job.yaml", kPyTorchJob}});
  EXPECT_THAT(run.Running(), ElementsAre("digits-master-0", "digits-worker-0"));
  EXPECT_EQ(run.End("digits-worker-0", 137), 1);
  EXPECT_THAT(run.Running(), ElementsAre("digits-master-0", "digits-worker-0"));
  EXPECT_EQ(run.State().restarts, 1);
  EXPECT_EQ(run.End("digits-master-0", 0), 1);
  EXPECT_TRUE(run.State().succeeded);
}

}  // namespace
}  // namespace muster::local
