// SPDX-License-Identifier: Apache-2.0
// A model of a cluster with a PyTorchJob `a`, its pods and its Services. Decisions about the job are carried out in it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "controller/plan/native_gang.h"
#include "controller/reconcile/pytorch_decide.h"
#include "tests/controller/plan/pytorch_planned.h"
#include "tests/controller/reconcile/decided.h"

namespace muster::controller {

class PyTorchWorld {
 public:
  static constexpr auto kGrace = 30 * kSecond;

  explicit PyTorchWorld(PyTorchParts parts, PyTorchOptions options = PyTorchTestOptions())
      : parts_(std::move(parts)), options_(std::move(options)) {
    Read();
    job.meta.created = now;
  }

  PyTorchJob job;
  PyTorchPlan plan;
  Observed seen;
  WallTime now = kNow;
  std::set<std::string> objects;  // kinds of PyTorchPlan::objects that exist
  bool gone = false;              // the job was deleted

  const PyTorchParts& parts() const { return parts_; }

  // Changes the spec of the job.
  void Change(const PyTorchParts& parts) {
    parts_ = parts;
    const PyTorchStatusAndMeta kept{job.status, job.meta};
    Read();
    job.status = kept.status;
    job.meta.created = kept.meta.created;
    job.meta.generation = kept.meta.generation + 1;
    seen.has_objects = false;
  }

  PyTorchDecision Decide() const { return controller::Decide(job, NeedsPlan(job, seen) ? &plan : nullptr, seen, now); }

  // Carries out the first `writes` writes of the decision: a controller may be killed after any. True: these were all.
  bool CarryOut(const PyTorchDecision& decision, int writes = 1'000'000) {
    const bool changes = !(decision.status == job.status);
    if (changes && decision.status_first && writes-- > 0) job.status = decision.status;
    for (const Action& action : decision.actions) {
      if (writes-- <= 0) return false;
      Do(action);
    }
    if (changes && !decision.status_first && writes-- > 0) job.status = decision.status;
    if (writes < 0) return false;
    if (decision.objects_made) seen.has_objects = true;
    if (job.suspend) seen.has_objects = false;
    return true;
  }

  PyTorchDecision Pass() {
    PyTorchDecision decision = Decide();
    CarryOut(decision);
    return decision;
  }

  // Runs passes, with the kubelets before each, until nothing is left to do now.
  void Settle() {
    for (int pass = 0; pass < 30 && !gone; ++pass) {
      End();
      Run();
      const PyTorchDecision decision = Decide();
      if (decision.actions.empty() && decision.status == job.status) {
        EXPECT_THAT(Reasons(decision), ::testing::IsEmpty()) << "nothing happens, and is told in each pass";
        return;
      }
      CarryOut(decision);
    }
    if (!gone) ADD_FAILURE() << "it never settles: " << ::testing::PrintToString(Actions(Decide()));
  }

  // The kubelets: End removes pods that are being deleted, Run starts new pods.
  void End() {
    std::erase_if(seen.pods, [](const ObservedPod& pod) { return pod.meta.deleted.has_value(); });
  }
  void Run() {
    for (ObservedPod& pod : seen.pods) {
      if (pod.phase != "Pending" || pod.meta.deleted) continue;
      pod.phase = "Running";
      pod.ran = true;
      pod.node = "n1";
      pod.pending.clear();
    }
  }

  void Wait(std::chrono::seconds time) { now += time; }

  bool Has(const std::string& name) const {
    return std::any_of(seen.pods.begin(), seen.pods.end(), [&](const auto& pod) { return pod.meta.name == name; });
  }
  ObservedPod& Pod(const std::string& name) {
    for (ObservedPod& pod : seen.pods) {
      if (pod.meta.name == name) return pod;
    }
    ADD_FAILURE() << "no pod " << name;
    static ObservedPod none;
    return none;
  }
  ObservedService& Service(const std::string& name) {
    for (ObservedService& service : seen.services) {
      if (service.meta.name == name) return service;
    }
    ADD_FAILURE() << "no Service " << name;
    static ObservedService none;
    return none;
  }

  // The end of a container.
  static ObservedEnd EndOf(int code, WallTime when, const std::string& container = "pytorch") {
    ObservedEnd end;
    end.container = container;
    end.exit_code = code;
    end.reason = code == 0 ? "Completed" : "Error";
    end.finished = when;
    return end;
  }
  // The pod ends, because its container ends with `code`.
  ObservedPod& Ends(const std::string& name, int code) {
    ObservedPod& pod = Pod(name);
    pod.phase = code == 0 ? "Succeeded" : "Failed";
    pod.ends = {EndOf(code, now)};
    pod.ran = true;
    return pod;
  }
  // The container ends with `code`, and the kubelet restarts it.
  ObservedPod& StartsAgain(const std::string& name, int code) {
    ObservedPod& pod = Pod(name);
    pod.ends = {EndOf(code, now)};
    pod.ends[0].started_again = true;
    ++pod.restarts;
    return pod;
  }
  // Deleted from outside, and in its grace period.
  void IsDeleted(const std::string& name) { Pod(name).meta.deleted = now + kGrace; }
  void Vanishes(const std::string& name) {
    EXPECT_EQ(std::erase_if(seen.pods, [&](const auto& pod) { return pod.meta.name == name; }), 1U) << name;
  }

  // The type of the last condition.
  std::string State() const { return job.status.conditions.empty() ? "" : job.status.conditions.back().type; }
  std::string Message(std::string_view type) const {
    const JobCondition* condition = job.status.Find(type);
    return condition == nullptr ? "" : condition->message;
  }
  std::vector<std::string> PodNames() const {
    std::vector<std::string> names;
    for (const ObservedPod& pod : seen.pods) names.push_back(pod.meta.name);
    std::sort(names.begin(), names.end());
    return names;
  }
  std::vector<std::string> ServiceNames() const {
    std::vector<std::string> names;
    for (const ObservedService& service : seen.services) names.push_back(service.meta.name);
    std::sort(names.begin(), names.end());
    return names;
  }
  std::set<std::string> Uids() const {
    std::set<std::string> uids;
    for (const ObservedPod& pod : seen.pods) uids.insert(pod.meta.uid);
    return uids;
  }

 private:
  struct PyTorchStatusAndMeta {
    PyTorchJobStatus status;
    Meta meta;
  };

  void Read() {
    job = PyTorchJobOf(PyTorchJobObject(parts_));
    plan = PyTorchPlanOf(job, options_);
  }

  template <class Object>
  static Object* Named(std::vector<Object>& all, const Action& action) {
    for (Object& one : all) {
      if (one.meta.name == action.name && (action.uid.empty() || one.meta.uid == action.uid)) return &one;
    }
    return nullptr;
  }

  Json Made(const Action& action) {
    Json object = action.object();
    object["metadata"]["uid"] = fmt::format("uid-{}", ++uids_);
    return object;
  }

  void Do(const Action& action) {
    using Kind = Action::Kind;
    ObservedPod* pod = Named(seen.pods, action);
    switch (action.kind) {
      case Kind::kCreatePod: {
        if (pod != nullptr) {
          EXPECT_TRUE(pod->meta.deleted) << "a second pod " << action.name;
          return;
        }
        Json object = Made(action);
        object["status"]["phase"] = "Pending";
        auto read = ReadPod(object);
        ASSERT_TRUE(read.ok()) << read.status();
        read->meta.created = read->moved = now;
        seen.pods.push_back(*std::move(read));
        return;
      }
      case Kind::kCreateService: {
        EXPECT_EQ(Named(seen.services, action), nullptr) << "a second Service " << action.name;
        auto read = ReadService(Made(action));
        ASSERT_TRUE(read.ok()) << read.status();
        seen.services.push_back(*std::move(read));
        return;
      }
      case Kind::kCreateObject: {
        const std::string kind = TextField(action.object(), "kind");
        objects.insert(kind);
        // The controller does not watch the PodGroups of Kubernetes itself.
        if (kind != "PodGroup" || seen.pod_group || TextField(action.object(), "apiVersion") == kGangApi) return;
        auto read = ReadPodGroup(Made(action));
        ASSERT_TRUE(read.ok()) << read.status();
        read->phase = "Pending";
        seen.pod_group = *std::move(read);
        return;
      }
      case Kind::kDeletePod:
        if (pod == nullptr) return;
        if (pod->phase == "Running" && !pod->meta.deleted) {
          pod->meta.deleted = now + kGrace;
        } else if (pod->phase != "Running") {
          std::erase_if(seen.pods, [&](const auto& one) { return one.meta.uid == action.uid; });
        }
        return;
      case Kind::kDropPod:
        std::erase_if(seen.pods, [&](const auto& one) { return one.meta.uid == action.uid; });
        return;
      case Kind::kAdoptPod:
        ASSERT_NE(pod, nullptr);
        pod->meta.owners = {{kKubeflowApi, kPyTorchJobKind, job.meta.name, job.meta.uid, true}};
        return;
      case Kind::kEndPod:
        ASSERT_NE(pod, nullptr);
        pod->ended_here = true;
        return;
      case Kind::kAnnotatePod:
        ASSERT_NE(pod, nullptr);
        pod->meta.annotations["muster.dev/nodes"] = fmt::format("{}", action.pods);
        return;
      case Kind::kDeleteService:
        std::erase_if(seen.services, [&](const auto& one) { return one.meta.uid == action.uid; });
        return;
      case Kind::kDeleteObject:
        objects.erase(TextField(action.object(), "kind"));
        if (TextField(action.object(), "kind") == "PodGroup") seen.pod_group.reset();
        return;
      case Kind::kDeleteOwner:
        gone = true;
        return;
      default:
        ADD_FAILURE() << "no action of a PyTorchJob: " << NameOf(action.kind);
    }
  }

  PyTorchParts parts_;
  PyTorchOptions options_;
  int uids_ = 0;
};

// A job whose pods all run.
inline PyTorchWorld RunningWorld(PyTorchParts parts, const PyTorchOptions& options = PyTorchTestOptions()) {
  PyTorchWorld world(std::move(parts), options);
  world.Settle();
  EXPECT_EQ(world.State(), "Running");
  return world;
}

}  // namespace muster::controller
