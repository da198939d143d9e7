// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/plan_files.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/nearest_names.h"
#include "controller/api/old_shape.h"
#include "controller/plan/train_job_plan.h"

namespace muster::controller {
namespace {

std::string Said(std::string_view kind, std::string_view name) { return fmt::format("{} {}", kind, Quoted(name)); }

// Other kinds of training jobs, and what to write instead.
struct OtherKind {
  std::string_view kind, remedy;
};
constexpr OtherKind kOtherKinds[] = {
    {"MPIJob", "a TrainJob of the runtime deepspeed-distributed; `muster init mpi` writes one to begin with"},
    {"JAXJob", "a TrainJob of the runtime jax-distributed; `muster init jax` writes one to begin with"},
    {"TFJob", "a TrainJob of the runtime plain, which starts the command on each node"},
    {"PaddleJob", "a TrainJob of the runtime plain, which starts the command on each node"},
    {"XGBoostJob", "a TrainJob of the runtime xgboost-distributed"},
};

// Why there is nothing to plan in `files`, whose other objects are `objects`.
Status NothingToPlan(const std::vector<InputFile>& files, const std::vector<FileObject>& objects) {
  constexpr size_t kMostSaid = 5;
  std::vector<std::string> said;
  for (const FileObject& object : objects) {
    for (const OtherKind& other : kOtherKinds) {
      if (object.kind == other.kind)
        return object.Wrong(fmt::format("kind: {} is not read; write {}", other.kind, other.remedy));
    }
    if (object.file->is_own) said.push_back(Said(object.kind, object.name));
  }
  if (said.size() > kMostSaid) {
    said.resize(kMostSaid);
    said.push_back("...");
  }
  return absl::InvalidArgumentError(
      fmt::format("{}: there is no TrainJob and no PyTorchJob to plan{}{}; give its file with -f", NamesOf(files),
                  said.empty() ? "" : ", only ", Join(said, ", ")));
}

bool IsRuntime(std::string_view kind) { return kind == "TrainingRuntime" || kind == "ClusterTrainingRuntime"; }

StatusOr<const FileObject*> FindRuntime(const FileObject& train_job, const TrainJob& job,
                                        const std::vector<FileObject>& runtimes) {
  if (job.runtime.api_group != kTrainerGroup) {
    return train_job.Wrong(
        fmt::format("spec.runtimeRef: unsupported runtime: {}.{}; use a ClusterTrainingRuntime or a "
                    "TrainingRuntime of {}",
                    job.runtime.kind, job.runtime.api_group, kTrainerGroup));
  }
  for (const FileObject& runtime : runtimes) {
    if (runtime.kind == job.runtime.kind && runtime.name == job.runtime.name) return &runtime;
  }
  std::vector<std::string> all, names;
  for (const FileObject& runtime : runtimes) {
    all.push_back(Said(runtime.kind, runtime.name));
    names.push_back(runtime.name);
  }
  std::vector<std::string> nearest;
  for (const std::string& name : NearestNames(job.runtime.name, names)) {
    for (const FileObject& runtime : runtimes) {
      const std::string said = Said(runtime.kind, runtime.name);
      const bool is_said = std::find(nearest.begin(), nearest.end(), said) != nearest.end();
      if (runtime.name == name && !is_said) nearest.push_back(said);
    }
  }
  return train_job.Wrong(
      fmt::format("spec.runtimeRef: {} is in none of the files; they have: {}. {}ive its file with -f",
                  Said(job.runtime.kind, job.runtime.name), all.empty() ? "no runtime" : Join(all, ", "),
                  nearest.empty() ? "G" : fmt::format("The nearest: {}. Name that, or g", Join(nearest, ", "))));
}

// If `message` of PlanTrainJob begins with "runtime 'NAME': ", the fault is in the runtime.
Status WrongPlan(const FileObject& train_job, const FileObject& runtime, std::string_view message) {
  const std::string prefix = fmt::format("runtime '{}': ", runtime.name);
  if (message.starts_with(prefix)) return runtime.Wrong(message.substr(prefix.size()));
  return train_job.Wrong(message);
}

void SayUnknown(const FileObject& object, const UnknownFields& unknown, std::vector<std::string>* remarks) {
  for (const auto& [path, nearest] : unknown) {
    const std::string hint = nearest.empty() ? "" : fmt::format("; the nearest is {}", Quoted(nearest));
    remarks->push_back(object.Say(fmt::format("{}: is not a field of a {}: it is ignored{}", path, object.kind, hint)));
  }
}

StatusOr<PlannedTrainJob> PlanOne(const FileObject& train_job, const std::vector<FileObject>& runtimes,
                                  const PlanOptions& options, const FileHooks& hooks,
                                  std::vector<std::string>* remarks) {
  auto shape = NewestShape(train_job.document.object);
  if (!shape.ok()) return train_job.Wrong(Message(shape.status()));
  for (const std::string& warning : shape->warnings) remarks->push_back(train_job.Say(warning));
  PlannedTrainJob planned;
  UnknownFields unknown;
  auto job = ReadTrainJob(shape->object, &unknown);
  if (!job.ok()) return train_job.Wrong(Message(job.status()));
  SayUnknown(train_job, unknown, remarks);
  planned.job = *std::move(job);
  MUSTER_ASSIGN_OR_RETURN(const FileObject* found, FindRuntime(train_job, planned.job, runtimes));
  auto runtime = ReadRuntime(found->document.object);
  if (!runtime.ok()) return found->Wrong(Message(runtime.status()));
  planned.runtime = *std::move(runtime);
  auto plan = PlanTrainJob(planned.job, planned.runtime, options);
  if (!plan.ok()) return WrongPlan(train_job, *found, Message(plan.status()));
  if (hooks.check) MUSTER_RETURN_IF_ERROR(hooks.check(train_job, planned.job, *found, planned.runtime));
  planned.plan = *std::move(plan);
  for (const Notice& notice : planned.plan.notices) {
    remarks->push_back(fmt::format("{}: {}", train_job.Place(""), notice.message));
  }
  auto snapshot = MakeSnapshot(planned.job, found->document.object);
  if (!snapshot.ok()) return found->Wrong(Message(snapshot.status()));
  planned.snapshot = *std::move(snapshot);
  return planned;
}

StatusOr<PlannedPyTorchJob> PlanOne(const FileObject& pytorch_job, const PyTorchOptions& options,
                                    std::vector<std::string>* remarks) {
  PlannedPyTorchJob planned;
  UnknownFields unknown;
  auto job = ReadPyTorchJob(pytorch_job.document.object, &unknown);
  if (!job.ok()) return pytorch_job.Wrong(Message(job.status()));
  planned.job = *std::move(job);
  auto plan = PlanPyTorchJob(planned.job, options);
  if (!plan.ok()) return pytorch_job.Wrong(Message(plan.status()));
  planned.plan = *std::move(plan);
  SayUnknown(pytorch_job, unknown, remarks);
  for (const Notice& notice : planned.plan.notices) remarks->push_back(pytorch_job.Say(notice.message));
  if (planned.job.suspend) {
    remarks->push_back(pytorch_job.Say("spec.runPolicy.suspend: pods and Services are made once it is false"));
  }
  return planned;
}

}  // namespace

StatusOr<PlannedFiles> PlanFiles(const std::vector<InputFile>& files, const PlanOptions& options,
                                 const FileHooks& hooks) {
  PlannedFiles planned;
  MUSTER_ASSIGN_OR_RETURN(std::vector<FileObject> objects, ReadFileObjects(files));
  std::vector<FileObject> train_jobs, runtimes, pytorch_jobs, others;
  for (FileObject& object : objects) {
    const bool is_job = object.kind == "TrainJob" || object.kind == kPyTorchJobKind;
    if (hooks.edit && is_job) MUSTER_RETURN_IF_ERROR(hooks.edit(&object));
    if (object.kind == "TrainJob") {
      train_jobs.push_back(std::move(object));
    } else if (IsRuntime(object.kind)) {
      UnknownFields unknown;  // a runtime that cannot be read is refused if a job refers to it
      if (ReadRuntime(object.document.object, &unknown).ok()) SayUnknown(object, unknown, &planned.remarks);
      runtimes.push_back(std::move(object));
    } else if (object.kind == kPyTorchJobKind) {
      pytorch_jobs.push_back(std::move(object));
    } else {
      if (!hooks.beside.contains(object.kind)) {
        planned.remarks.push_back(
            fmt::format("{}: {} {} is not a part of the plan", object.Place("kind"), object.kind, Quoted(object.name)));
      }
      others.push_back(std::move(object));
    }
  }
  if (train_jobs.empty() && pytorch_jobs.empty()) {
    others.insert(others.begin(), std::make_move_iterator(runtimes.begin()), std::make_move_iterator(runtimes.end()));
    return NothingToPlan(files, others);
  }
  for (const FileObject& train_job : train_jobs) {
    MUSTER_ASSIGN_OR_RETURN(PlannedTrainJob one, PlanOne(train_job, runtimes, options, hooks, &planned.remarks));
    planned.jobs.push_back(std::move(one));
  }
  for (const FileObject& pytorch_job : pytorch_jobs) {
    MUSTER_ASSIGN_OR_RETURN(PlannedPyTorchJob one, PlanOne(pytorch_job, {.agent = options}, &planned.remarks));
    planned.pytorch_jobs.push_back(std::move(one));
  }
  return planned;
}

std::vector<Json> PlannedObjects(const PlannedTrainJob& planned) {
  std::vector<Json> objects = {planned.snapshot};
  if (!planned.plan.service.is_null()) objects.insert(objects.begin(), planned.plan.service);
  for (const PlannedObject& each : planned.plan.objects) objects.push_back(each.object);
  for (const PlannedJob& job : planned.plan.jobs) {
    objects.push_back(JobOfAttempt(job, {.restarts_left = planned.plan.max_restarts, .suspend = planned.job.suspend}));
  }
  return objects;
}

std::vector<Json> PlannedObjects(const PlannedPyTorchJob& planned) {
  std::vector<Json> objects;
  for (const PlannedObject& each : planned.plan.objects) objects.push_back(each.object);
  const PodAttempt attempt{.restarts_left = planned.plan.budget.value_or(kUnlimitedRestarts)};
  for (const PlannedReplicas& replicas : planned.plan.replicas) {
    for (int index = 0; index < replicas.count; ++index) {
      objects.push_back(ServiceOfReplica(planned.job, replicas, index));
      objects.push_back(PodOfReplica(planned.job, planned.plan, replicas, index, attempt));
    }
  }
  return objects;
}

std::vector<Json> PlannedObjects(const PlannedFiles& planned) {
  std::vector<Json> objects;
  const auto add = [&objects](const auto& job) {
    for (Json& object : PlannedObjects(job)) objects.push_back(std::move(object));
  };
  for (const PlannedTrainJob& job : planned.jobs) add(job);
  for (const PlannedPyTorchJob& job : planned.pytorch_jobs) add(job);
  return objects;
}

}  // namespace muster::controller
