#include "controller/plan/plan_files.h"

#include <algorithm>
#include <optional>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/old_shape.h"
#include "controller/api/yaml.h"

namespace muster::controller {
namespace {

// An object of a file, and where it stands.
struct Found {
  const InputFile* file;
  YamlDocument document;
  std::string kind, name;

  std::string Place(std::string_view path) const { return fmt::format("{}:{}", file->name, document.LineOf(path)); }
  // The first word of `message` is a path of this object, where it has one.
  std::string Say(std::string_view message) const {
    std::string_view path = message.substr(0, message.find(' '));
    if (path.ends_with(':')) path.remove_suffix(1);
    return fmt::format("{}: {}", Place(path), message);
  }
  Status Wrong(std::string_view message) const { return absl::InvalidArgumentError(Say(message)); }
};

bool IsRuntime(std::string_view kind) { return kind == "TrainingRuntime" || kind == "ClusterTrainingRuntime"; }

// The Trainer's own kinds; of others, a remark.
Status Sort(Found found, std::vector<Found>* train_jobs, std::vector<Found>* runtimes,
            std::vector<std::string>* remarks) {
  found.kind = TextField(found.document.object, "kind");
  if (const Json* metadata = FindField(found.document.object, "metadata")) found.name = TextField(*metadata, "name");
  if (found.kind == "TrainJob") {
    train_jobs->push_back(std::move(found));
  } else if (IsRuntime(found.kind)) {
    runtimes->push_back(std::move(found));
  } else if (found.kind.empty()) {
    return found.Wrong("kind: it is missing; TrainJob, TrainingRuntime or ClusterTrainingRuntime");
  } else {
    remarks->push_back(
        fmt::format("{}: {} {} is no part of the plan", found.Place("kind"), found.kind, Quoted(found.name)));
  }
  return absl::OkStatus();
}

StatusOr<const Found*> FindRuntime(const Found& train_job, const TrainJob& job, const std::vector<Found>& runtimes) {
  if (job.runtime.api_group != kTrainerGroup) {
    return train_job.Wrong(
        fmt::format("spec.runtimeRef: unsupported runtime: {}.{}; use a ClusterTrainingRuntime or a "
                    "TrainingRuntime of {}",
                    job.runtime.kind, job.runtime.api_group, kTrainerGroup));
  }
  for (const Found& runtime : runtimes) {
    if (runtime.kind == job.runtime.kind && runtime.name == job.runtime.name) return &runtime;
  }
  std::vector<std::string> names;
  for (const Found& runtime : runtimes) names.push_back(fmt::format("{} {}", runtime.kind, Quoted(runtime.name)));
  return train_job.Wrong(
      fmt::format("spec.runtimeRef: {} {} is in none of the files; they have: {}. Give its file with "
                  "-f",
                  job.runtime.kind, Quoted(job.runtime.name), names.empty() ? "no runtime" : Join(names, ", ")));
}

// A message of MakePlan that speaks of the runtime begins with its name.
Status WrongPlan(const Found& train_job, const Found& runtime, std::string_view message) {
  const std::string prefix = fmt::format("runtime '{}': ", runtime.name);
  if (message.starts_with(prefix)) return runtime.Wrong(message.substr(prefix.size()));
  return train_job.Wrong(message);
}

StatusOr<PlannedTrainJob> PlanOne(const Found& train_job, const std::vector<Found>& runtimes,
                                  const PlanOptions& options, std::vector<std::string>* remarks) {
  auto shape = NewestShape(train_job.document.object);
  if (!shape.ok()) return train_job.Wrong(Message(shape.status()));
  for (const std::string& warning : shape->warnings) remarks->push_back(train_job.Say(warning));
  PlannedTrainJob planned;
  auto job = ReadTrainJob(shape->object);
  if (!job.ok()) return train_job.Wrong(Message(job.status()));
  planned.job = *std::move(job);
  MUSTER_ASSIGN_OR_RETURN(const Found* found, FindRuntime(train_job, planned.job, runtimes));
  auto runtime = ReadRuntime(found->document.object);
  if (!runtime.ok()) return found->Wrong(Message(runtime.status()));
  planned.runtime = *std::move(runtime);
  auto plan = MakePlan(planned.job, planned.runtime, options);
  if (!plan.ok()) return WrongPlan(train_job, *found, Message(plan.status()));
  planned.plan = *std::move(plan);
  for (const Notice& notice : planned.plan.notices) {
    remarks->push_back(fmt::format("{}: {}", train_job.Place(""), notice.message));
  }
  planned.snapshot = MakeSnapshot(planned.job, found->document.object);
  return planned;
}

// "line 3, column 5: ..." of a file becomes "file:3:5: ...".
Status WrongYaml(const InputFile& file, std::string_view message) {
  constexpr std::string_view kLine = "line ", kColumn = ", column ";
  const size_t column = message.find(kColumn), end = message.find(": ");
  if (!message.starts_with(kLine) || column == std::string_view::npos || end == std::string_view::npos ||
      end < column) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", file.name, message));
  }
  const std::string_view line_number = message.substr(kLine.size(), column - kLine.size());
  const std::string_view column_number = message.substr(column + kColumn.size(), end - column - kColumn.size());
  return absl::InvalidArgumentError(
      fmt::format("{}:{}:{}: {}", file.name, line_number, column_number, message.substr(end + 2)));
}

}  // namespace

StatusOr<PlannedFiles> PlanFiles(const std::vector<InputFile>& files, const PlanOptions& options) {
  PlannedFiles planned;
  std::vector<Found> train_jobs, runtimes;
  for (const InputFile& file : files) {
    auto documents = ReadYaml(file.text);
    if (!documents.ok()) return WrongYaml(file, Message(documents.status()));
    for (YamlDocument& document : *documents) {
      MUSTER_RETURN_IF_ERROR(
          Sort({.file = &file, .document = std::move(document)}, &train_jobs, &runtimes, &planned.remarks));
    }
  }
  if (train_jobs.empty()) {
    std::vector<std::string> names;
    for (const InputFile& file : files) names.push_back(file.name);
    return absl::InvalidArgumentError(
        fmt::format("{}: there is no TrainJob to plan; give its file with -f", Join(names, ", ")));
  }
  for (const Found& train_job : train_jobs) {
    MUSTER_ASSIGN_OR_RETURN(PlannedTrainJob one, PlanOne(train_job, runtimes, options, &planned.remarks));
    planned.jobs.push_back(std::move(one));
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

std::string ObjectsAsYaml(const std::vector<Json>& objects) {
  std::string text;
  for (const Json& object : objects) {
    if (!text.empty()) text += "---\n";
    text += WriteYaml(object);
  }
  return text;
}

std::string ObjectsAsJson(const std::vector<Json>& objects) {
  const Json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", Json(objects)}};
  return WriteJson(list, 2) + "\n";
}

}  // namespace muster::controller
