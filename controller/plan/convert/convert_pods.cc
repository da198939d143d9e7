// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/convert/convert_pods.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"
#include "controller/plan/agent.h"
#include "controller/plan/draft.h"
#include "controller/plan/names.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

constexpr size_t kMostPaths = 12;  // listed in one remark

// The Trainer always sets these variables in the container `node`.
constexpr std::array<std::string_view, 4> kOfTrainer = {"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK",
                                                        "PET_MASTER_ADDR"};

bool IsOfTrainer(std::string_view name) {
  return std::find(kOfTrainer.begin(), kOfTrainer.end(), name) != kOfTrainer.end();
}

bool IsRank(std::string_view name) { return name == "RANK" || name == "PET_NODE_RANK"; }

bool IsLetterOrDigit(char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'); }

// Whether a host name may begin at `at`. A single '/' before it belongs to a path; two belong to a URL.
bool BeginsHost(std::string_view text, size_t at) {
  if (at == 0) return true;
  const char before = text[at - 1];
  if (before == '/') return at >= 2 && text[at - 2] == '/';
  return !IsLetterOrDigit(before) && before != '-' && before != '_' && before != '.';
}

bool EndsHost(std::string_view text, size_t at) {
  return at == text.size() || (!IsLetterOrDigit(text[at]) && text[at] != '-' && text[at] != '_');
}

// A v1 host name at the beginning of `text`: the pod's rank, and the length of the name.
struct HostInText {
  int rank;
  size_t size;
};
std::optional<HostInText> HostAt(const PyTorchJob& job, const PyTorchPlan& plan, std::string_view text) {
  for (const PlannedReplicas& replicas : plan.replicas) {
    const std::string prefix = fmt::format("{}-{}-", job.meta.name, ReplicaLabel(replicas.type));
    if (!text.starts_with(prefix)) continue;
    const size_t end = std::min(text.find_first_not_of("0123456789", prefix.size()), text.size());
    const auto index = ParseInt(text.substr(prefix.size(), end - prefix.size()));
    if (index && *index < 1'000'000 && EndsHost(text, end)) {
      return HostInText{replicas.first_rank + static_cast<int>(*index), end};
    }
  }
  return std::nullopt;
}

// Calls `change` with the path and the text of each command, argument and variable of the containers of `pod`.
template <class Change>
void ForEachText(const std::string& path, Json* pod, Change change) {
  for (const char* list : {"initContainers", "containers"}) {
    if (!pod->contains(list)) continue;
    Json& containers = (*pod)[list];
    for (size_t i = 0; i < containers.size(); ++i) {
      const std::string of = PathOf(PathOf(path, list), i);
      for (const char* field : {"command", "args"}) {
        if (!containers[i].contains(field)) continue;
        Json& words = containers[i][field];
        for (size_t k = 0; k < words.size(); ++k) change(PathOf(PathOf(of, field), k), &words[k]);
      }
      if (!containers[i].contains("env")) continue;
      Json& env = containers[i]["env"];
      for (size_t k = 0; k < env.size(); ++k) {
        if (env[k].contains("value")) change(PathOf(PathOf(PathOf(of, "env"), k), "value"), &env[k]["value"]);
      }
    }
  }
}

bool SameScalar(const Json& a, const Json& b) {
  const auto text = [](const Json& json) { return json.is_string() ? json.get<std::string>() : WriteJson(json); };
  return a.is_primitive() && b.is_primitive() && text(a) == text(b);
}

bool AreNamed(const Json& list) {
  return list.is_array() &&
         std::all_of(list.begin(), list.end(), [](const Json& entry) { return !TextField(entry, "name").empty(); });
}

// Appends the paths at which `master` and `worker` differ. Lists of named objects are compared by name. A path that
// only one of them has is a difference.
void Compare(const Json& master, const Json& worker, const std::string& path, std::vector<std::string>* paths) {
  if (master == worker || SameScalar(master, worker)) return;
  const auto is_empty = [](const Json& json) { return json.is_null() || (json.is_structured() && json.empty()); };
  if (is_empty(master) && is_empty(worker)) return;
  if (master.is_object() && worker.is_object()) {
    for (const auto& [key, value] : master.items())
      Compare(value, PartOf(worker, key.c_str()), PathOf(path, key), paths);
    for (const auto& [key, value] : worker.items()) {
      if (!master.contains(key)) Compare(Json(), value, PathOf(path, key), paths);
    }
    return;
  }
  if (AreNamed(master) && AreNamed(worker) && !master.empty() && !worker.empty()) {
    const auto named = [](const Json& list, const std::string& name) {
      const auto found =
          std::find_if(list.begin(), list.end(), [&](const Json& e) { return TextField(e, "name") == name; });
      return found == list.end() ? Json() : *found;
    };
    for (const Json& entry : master) {
      const std::string name = TextField(entry, "name");
      Compare(entry, named(worker, name), fmt::format("{}[{}]", path, name), paths);
    }
    for (const Json& entry : worker) {
      const std::string name = TextField(entry, "name");
      if (named(master, name).is_null()) paths->push_back(fmt::format("{}[{}]", path, name));
    }
    return;
  }
  paths->push_back(path);
}

// A template without what v1 sets itself: restartPolicy and the port pytorchjob-port.
Json Compared(Json pod_template) {
  Json& pod = pod_template["spec"];
  pod.erase("restartPolicy");
  for (Json& container : pod["containers"]) {
    if (!container.contains("ports")) continue;
    Json& ports = container["ports"];
    const auto own = [](const Json& port) { return TextField(port, "name") == kPyTorchPortName; };
    ports.erase(std::remove_if(ports.begin(), ports.end(), own), ports.end());
  }
  return pod_template;
}

class PodConverter {
 public:
  PodConverter(const PyTorchJob& job, const PyTorchPlan& plan, std::vector<std::string>* remarks)
      : job_(job), plan_(plan), spec_(job.replicas.front()), remarks_(*remarks) {
    const Json& containers = spec_.pod_template["spec"]["containers"];
    for (size_t i = 0; i < containers.size(); ++i) {
      if (TextField(containers[i], "name") == kPyTorchContainer) main_ = i;
    }
  }

  StatusOr<ConvertedPods> Make() {
    RemarkDifferences();
    ConvertedPods pods{.pod_template = spec_.pod_template, .processes = "", .trainer = main_};
    Json& pod = pods.pod_template["spec"];
    pod.erase("restartPolicy");  // v1 overwrites the field
    ForEachText(Path("spec"), &pod, [this](const std::string& path, Json* text) { MoveHosts(path, text); });
    const Json planned = PodOfReplica(job_, plan_, plan_.replicas.front(), 0, {})["spec"]["containers"];
    for (size_t i = 0; i < planned.size(); ++i) {
      pod["containers"][i]["env"] = Environment(planned[i]["env"], i);
      if (planned[i].contains("ports")) pod["containers"][i]["ports"] = planned[i]["ports"];
    }
    pods.processes = EnvText(planned[main_], "PET_NPROC_PER_NODE")->get<std::string>();
    MUSTER_RETURN_IF_ERROR(RenameContainer(&pods.pod_template));
    pods.own_command = CommandIsKnown(pod["containers"][main_]);
    for (const char* field : {"metadata", "spec"}) {
      if (pods.pod_template[field].empty()) pods.pod_template.erase(field);
    }
    return pods;
  }

 private:
  std::string Path(std::string_view rest) const { return fmt::format("{}.template.{}", ReplicaPath(spec_.type), rest); }

  void RemarkDifferences() {
    if (job_.replicas.size() < 2 || job_.replicas[1].replicas == 0) return;
    const ReplicaSpec& worker = job_.replicas[1];
    std::vector<std::string> paths;
    if (spec_.restart != worker.restart) paths.push_back("restartPolicy");
    Compare(Compared(spec_.pod_template), Compared(worker.pod_template), "template", &paths);
    if (paths.empty()) return;
    const size_t more = paths.size() - std::min(paths.size(), kMostPaths);
    paths.resize(paths.size() - more);
    remarks_.push_back(
        fmt::format("{}: WARNING: the Worker differs from the Master in {}{}. All nodes of a TrainJob have one "
                    "template, and it is the Master's: check that the {} can run with it, or make the two the same "
                    "before you convert",
                    ReplicaPath(worker.type), Join(paths, ", "), more == 0 ? "" : fmt::format(" and {} more", more),
                    worker.replicas == 1 ? "Worker" : fmt::format("{} Workers", worker.replicas)));
  }

  void MoveHosts(const std::string& path, Json* text) {
    const std::string old = text->get<std::string>();
    const std::string moved = WithNewHosts(job_, plan_, old);
    if (moved == old) return;
    remarks_.push_back(fmt::format("{}: {} has host names of the PyTorchJob; with those of the TrainJob it is {}", path,
                                   Quoted(old), Quoted(moved)));
    *text = moved;
  }

  // The variables of container `index`. `planned`: those in v1. Leaves out variables of the container `node` that the
  // Trainer sets itself.
  Json Environment(const Json& planned, size_t index) {
    Json env = Json::array();
    const auto& own = spec_.pod_template["spec"]["containers"][index];
    for (const Json& variable : planned) {
      const std::string name = TextField(variable, "name");
      if (index == main_ && IsOfTrainer(name)) {
        RemarkOverridden(name, FindNamed(own, "env", name));
      } else if (index == main_ && name == kMaxRestartsVariable && job_.elastic && job_.elastic->max_restarts) {
        continue;  // the runtime's elasticPolicy sets it
      } else if (IsRank(name) && plan_.has_master) {
        env.push_back(IndexVariable(name));
      } else {
        env.push_back(Moved(variable));
      }
    }
    return env;
  }

  // `own`: the variable in the PyTorchJob. With a Master v1 overwrites it too, so there is no remark.
  void RemarkOverridden(const std::string& name, const Json* own) {
    if (own == nullptr || plan_.has_master || name == "PET_NNODES" || name == "PET_NPROC_PER_NODE") return;
    remarks_.push_back(fmt::format("{}: variable {} is left out: the Trainer sets it itself in each pod",
                                   PathOf(Path("spec.containers"), main_), name));
  }

  Json Moved(Json variable) const {
    if (!variable.contains("value")) return variable;
    std::string value = variable["value"].get<std::string>();
    // When the job shrinks, node 0 stays, but node 1, which is Worker 0, may go. So the nodes meet at node 0.
    const bool meets = plan_.has_master && TextField(variable, "name") == "PET_RDZV_ENDPOINT";
    const std::string worker = ReplicaObjectName(job_.meta, ReplicaType::kWorker, 0) + ":";
    if (meets && value.starts_with(worker)) {
      value = fmt::format("{}:{}", ReplicaObjectName(job_.meta, ReplicaType::kMaster, 0), value.substr(worker.size()));
    }
    variable["value"] = WithNewHosts(job_, plan_, value);
    return variable;
  }

  // Renames the container `pytorch` to `node`, with all references to it.
  Status RenameContainer(Json* pod_template) const {
    Json& pod = (*pod_template)["spec"];
    const std::string old = TextField(pod["containers"][main_], "name");
    if (old == kTrainerContainer) return absl::OkStatus();
    for (const char* list : {"containers", "initContainers"}) {
      if (FindNamed(std::as_const(pod), list, kTrainerContainer) == nullptr) continue;
      return absl::InvalidArgumentError(
          fmt::format("{}: a container has the name {}, which the trainer's container has in a TrainJob; give it "
                      "another one",
                      Path(fmt::format("spec.{}", list)), kTrainerContainer));
    }
    RenameReferences(old, &pod);
    pod["containers"][main_]["name"] = kTrainerContainer;
    Json& metadata = (*pod_template)["metadata"];
    if (!metadata.contains("annotations")) return absl::OkStatus();
    Json annotations = Json::object();
    for (const auto& [key, value] : metadata["annotations"].items()) {
      const bool of_container = key.ends_with("/" + old);
      const std::string renamed = of_container ? key.substr(0, key.size() - old.size()) + kTrainerContainer : key;
      annotations[renamed] = key.ends_with("/default-container") && value == old ? Json(kTrainerContainer) : value;
    }
    metadata["annotations"] = std::move(annotations);
    return absl::OkStatus();
  }

  // In resourceFieldRef.containerName of variables and volumes.
  static void RenameReferences(const std::string& old, Json* json) {
    if (json->is_object()) {
      for (auto& [key, value] : json->items()) {
        if (key == "containerName" && value == old) {
          value = kTrainerContainer;
        } else {
          RenameReferences(old, &value);
        }
      }
    } else if (json->is_array()) {
      for (Json& value : *json) RenameReferences(old, &value);
    }
  }

  const PyTorchJob& job_;
  const PyTorchPlan& plan_;
  const ReplicaSpec& spec_;  // its template is used
  std::vector<std::string>& remarks_;
  size_t main_ = 0;  // index of the container `pytorch`, else 0
};

}  // namespace

std::string WithNewHosts(const PyTorchJob& job, const PyTorchPlan& plan, std::string_view text) {
  std::string moved;
  for (size_t at = 0; at < text.size();) {
    const auto host = BeginsHost(text, at) ? HostAt(job, plan, text.substr(at)) : std::nullopt;
    if (host) {
      moved += HostName(job.meta.name, kNodeJob, 0, host->rank, job.meta.name);
      at += host->size;
    } else {
      moved += text[at++];
    }
  }
  return moved;
}

StatusOr<ConvertedPods> ConvertPods(const PyTorchJob& job, const PyTorchPlan& plan, std::vector<std::string>* remarks) {
  return PodConverter(job, plan, remarks).Make();
}

}  // namespace muster::controller
