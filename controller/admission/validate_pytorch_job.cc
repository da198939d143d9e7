// SPDX-License-Identifier: Apache-2.0
#include "controller/admission/validate_pytorch_job.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/admission/meaning.h"
#include "controller/api/fields.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/api/pytorch_job.h"
#include "controller/plan/native_gang.h"
#include "controller/plan/pytorch_plan.h"

namespace muster::controller {
namespace {

constexpr char kReplicaSpecs[] = "spec.pytorchReplicaSpecs";
constexpr char kManagedBy[] = "spec.runPolicy.managedBy";
constexpr size_t kMostRefusals = 20;  // in one answer

// "text" in double quotes, as in the API server's messages; on one line, and cut if it is long.
std::string Value(std::string_view text) {
  std::string value = Quoted(text);
  value.front() = value.back() = '"';
  return value;
}

// "spec.pytorchReplicaSpecs[Worker]"
std::string PathOfReplica(std::string_view key) {
  const std::string quoted = Quoted(key);
  return fmt::format("{}[{}]", kReplicaSpecs, std::string_view(quoted).substr(1, quoted.size() - 2));
}

const Json* ManagerOf(const Json& job) { return FindField(PartOf(job, "spec", "runPolicy"), "managedBy"); }

bool SameManager(const Json& one, const Json& other) {
  const Json own = kManagedByTrainingOperator;
  const Json *a = ManagerOf(one), *b = ManagerOf(other);
  return (a == nullptr ? own : *a) == (b == nullptr ? own : *b);
}

// Compares by meaning, without runPolicy.suspend. An elasticPolicy without fields differs from none.
bool SameSpec(const Json& one, const Json& other) {
  Json a = PartOf(one, "spec"), b = PartOf(other, "spec");
  for (Json* spec : {&a, &b}) {
    if (!PartOf(*spec, "runPolicy").is_object()) continue;
    (*spec)["runPolicy"].erase("suspend");
  }
  const bool elastic = FindField(a, "elasticPolicy") != nullptr;
  return SameMeaning(&a, &b) && elastic == (FindField(b, "elasticPolicy") != nullptr);
}

// The longest name of a pod and its Service. With an autoscaler, Workers are counted up to elasticPolicy.maxReplicas.
std::string LongestName(const PyTorchJob& job) {
  std::string longest;
  for (const ReplicaSpec& replica : job.replicas) {
    const bool grows = replica.type == ReplicaType::kWorker && job.elastic && !job.elastic->metrics.empty();
    const int most = grows ? std::max(replica.replicas, job.elastic->most) : replica.replicas;
    std::string name = ReplicaObjectName(job.meta, replica.type, std::max(most - 1, 0));
    if (name.size() > longest.size()) longest = std::move(name);
  }
  return longest;
}

class Validator {
 public:
  Validator(const AdmissionRequest& request, const PyTorchOptions& options)
      : request_(request), job_(request.object), options_(options) {}

  Verdict Create() {
    JudgeManager();
    Judge();
    return verdict_;
  }

  Verdict Update() {
    if (IsBeingDeleted(job_)) return verdict_;
    JudgeSameManager();
    if (IsPyTorchJobManagedByMuster(job_) && !SameSpec(request_.old_object, job_)) Judge();
    return verdict_;
  }

 private:
  void Refuse(int code, std::string why) {
    if (verdict_.refusals.size() < kMostRefusals) verdict_.Refuse(code, std::move(why));
  }
  void Refuse(std::string_view path, std::string_view why) { Refuse(kForbidden, fmt::format("{}: {}", path, why)); }
  void Required(std::string_view path, std::string_view why) { Refuse(path, fmt::format("Required value: {}", why)); }

  void Judge() {
    JudgeName();
    JudgeElastic();
    JudgeReplicas();
    if (!verdict_.refusals.empty()) return;
    const auto job = ReadPyTorchJob(job_);
    if (!job.ok()) return Refuse(kInvalid, std::string(Message(job.status())));
    WarnOfRange(*job);
    if (IsPyTorchJobManagedByMuster(job_)) JudgePlan(*job);
  }

  // With fewer Workers than minReplicas training does not begin; pods beyond maxReplicas stand by.
  void WarnOfRange(const PyTorchJob& job) {
    const ReplicaSpec* workers = job.Find(ReplicaType::kWorker);
    if (!job.elastic || workers == nullptr) return;
    const int least = job.elastic->least, most = job.elastic->most, count = workers->replicas;
    if (count >= least && count <= most) return;
    verdict_.warnings.push_back(
        fmt::format("{}.replicas: {} is {} of elasticPolicy, {}", PathOfReplica(ReplicaName(ReplicaType::kWorker)),
                    count, count < least ? "below minReplicas" : "above maxReplicas",
                    count < least ? fmt::format("{}: training begins once there are so many", least)
                                  : fmt::format("{}: the pods beyond it stand by", most)));
  }

  void JudgeName() {
    const std::string name = NameOf(job_);
    if (IsLabel(name)) return;
    const std::string why =
        name.size() > kLongestLabel
            ? fmt::format("must be no more than {} characters", kLongestLabel)
            : "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
              "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
              "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    Refuse("metadata.name", fmt::format("Invalid value: {}: should match: {}", Value(name), why));
  }

  void JudgeManager() {
    const Json* manager = ManagerOf(job_);
    if (manager == nullptr || !manager->is_string()) return;  // ReadPyTorchJob() reports a wrong kind
    const std::string text = manager->get<std::string>();
    if (text == kManagedByTrainingOperator || text == kMultiKueue) return;
    Refuse(kManagedBy, fmt::format("Unsupported value: {}: supported values: \"{}\", \"{}\"", Value(text),
                                   kManagedByTrainingOperator, kMultiKueue));
  }

  void JudgeSameManager() {
    if (SameManager(request_.old_object, job_)) return;
    const Json* manager = ManagerOf(job_);
    const std::string value =
        manager == nullptr ? "null" : Value(TextField(PartOf(job_, "spec", "runPolicy"), "managedBy"));
    Refuse(kManagedBy,
           fmt::format("Invalid value: {}: field is immutable; make another PyTorchJob for another manager", value));
  }

  void JudgeElastic() {
    const Json& spec = PartOf(job_, "spec");
    const Json* elastic = FindField(spec, "elasticPolicy");
    if (elastic == nullptr) return;
    if (PartOf(spec, "pytorchReplicaSpecs", "Worker").is_null()) {
      Required(PathOfReplica("Worker"), "must be configured if elastic policy is used");
    }
    if (FindField(*elastic, "nProcPerNode") == nullptr) return;
    constexpr char kOld[] = "spec.elasticPolicy.nProcPerNode", kNew[] = "spec.nprocPerNode";
    verdict_.warnings.push_back(fmt::format("{} is deprecated, use {} instead", kOld, kNew));
    if (FindField(spec, "nprocPerNode") == nullptr) return;
    Refuse(kOld, fmt::format("Forbidden: must not be used with {0}; keep {0} alone", kNew));
  }

  void JudgeReplicas() {
    const Json& specs = PartOf(job_, "spec", "pytorchReplicaSpecs");
    if (specs.is_null() || specs == Json::object()) {
      return Required(kReplicaSpecs, "must be required; give it Master, Worker, or both");
    }
    if (!specs.is_object()) return;  // ReadPyTorchJob() reports it
    for (const auto& [key, replica] : specs.items()) {
      const std::string path = PathOfReplica(key);
      const bool master = key == ReplicaName(ReplicaType::kMaster);
      if (!master && key != ReplicaName(ReplicaType::kWorker)) {
        Refuse(path, fmt::format("Unsupported value: {}: supported values: \"Master\", \"Worker\"", Value(key)));
      }
      JudgeContainers(replica, path + ".template.spec.containers");
      JudgeCount(replica, path + ".replicas", master);
    }
  }

  void JudgeContainers(const Json& replica, const std::string& path) {
    const Json& containers = ListField(PartOf(replica, "template", "spec"), "containers");
    if (containers.empty()) Required(path, "must be specified; a pod needs a container");
    bool found = false;
    for (size_t i = 0; i < containers.size(); ++i) {
      const Json* image = FindField(containers[i], "image");
      if (image == nullptr || *image == "") {
        Required(PathOf(PathOf(path, i), "image"), "must be required; name the image that the container runs");
      }
      found = found || TextField(containers[i], "name") == kPyTorchContainer;
    }
    if (found) return;
    Required(path, fmt::format("must have at least one container with name {}", kPyTorchContainer));
  }

  void JudgeCount(const Json& replica, const std::string& path, bool master) {
    const Json* count = FindField(replica, "replicas");
    const auto number = count == nullptr ? std::nullopt : WholeNumber(*count);
    if (master && number != 1) {
      const std::string is = count == nullptr ? "is missing" : fmt::format("is {}", Shown(*count));
      Refuse(path, fmt::format("Forbidden: must be 1; it {}", is));
    } else if (!master && number && *number < 1) {
      Refuse(path, fmt::format("Forbidden: must be at least 1; it is {}; to stop the pods, suspend the job "
                               "(spec.runPolicy.suspend: true)",
                               *number));
    }
  }

  // Refuses a job that training-operator would accept but Muster cannot plan.
  void JudgePlan(const PyTorchJob& job) {
    const std::string name = LongestName(job);
    if (name.size() <= kLongestLabel) {
      const auto plan = PlanPyTorchJob(job, options_);
      if (!plan.ok()) return verdict_.Refuse(kForbidden, std::string(Message(plan.status())));
      verdict_.asks = WorkloadIn(plan->objects);
      return;
    }
    if (request_.operation == "UPDATE") {
      const auto before = ReadPyTorchJob(request_.old_object);
      if (before.ok() && LongestName(*before).size() >= name.size()) return;  // an existing job cannot get another name
    }
    const size_t over = name.size() - kLongestLabel;
    Refuse("metadata.name",
           fmt::format("Invalid value: {}: Service {} has a name of {} characters, and {} are possible; give the job a "
                       "name that is {} characters shorter",
                       Value(job.meta.name), Value(name), name.size(), kLongestLabel, over));
  }

  const AdmissionRequest& request_;
  const Json& job_;
  const PyTorchOptions& options_;
  Verdict verdict_;
};

}  // namespace

Verdict ValidatePyTorchJob(const AdmissionRequest& request, const PyTorchOptions& options) {
  Validator validator(request, options);
  return request.operation == "CREATE"   ? validator.Create()
         : request.operation == "UPDATE" ? validator.Update()
                                         : Verdict();
}

AdmissionRequest PyTorchUpdateByScale(const AdmissionRequest& request, const Json& job) {
  return UpdateByScale(request, job, {"spec", "pytorchReplicaSpecs", "Worker", "replicas"});
}

}  // namespace muster::controller
