// SPDX-License-Identifier: Apache-2.0
#include "local/node_numbers.h"

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/api/pytorch_job.h"
#include "controller/plan/pod_fields.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr char kJobNameLabel[] = "batch.kubernetes.io/job-name";

// The number of torchrun's workers in each of such pods; nullopt: only torchrun itself knows it.
std::optional<int64_t> RanksOf(const Json& pod_spec, const char* name) {
  const Json* container = FindNamed(pod_spec, "containers", name);
  if (container == nullptr) return std::nullopt;
  bool torchrun = false;
  for (const char* field : {"command", "args"}) {
    for (const Json& word : ListField(*container, field)) {
      const std::string text = word.is_string() ? word.get<std::string>() : "";
      torchrun = torchrun || BaseName(text) == "torchrun";
      if (text.find("nproc") != std::string::npos || text.find("nnodes") != std::string::npos) return std::nullopt;
    }
  }
  const Json* processes = EnvText(*container, "PET_NPROC_PER_NODE");
  const Json* nodes = EnvText(*container, "PET_NNODES");
  if (!torchrun || processes == nullptr || nodes == nullptr || !ParseInt(nodes->get<std::string>())) {
    return std::nullopt;
  }
  return ParseInt(processes->get<std::string>());
}

}  // namespace

NodeNumbers::NodeNumbers(const PlannedFiles& planned) {
  std::optional<int64_t> each;
  const auto add = [&](const std::string& name, int pods, std::optional<int64_t> ranks) {
    each = count_ == 0 || each == ranks ? ranks : std::nullopt;
    first_[name] = count_;
    count_ += pods;
  };
  for (const PlannedTrainJob& job : planned.jobs) {
    for (const PlannedJob& of : job.plan.jobs) {
      if (of.are_nodes) add(of.name, of.pods, RanksOf(PodSpec(of.Object()), kTrainerContainer));
    }
  }
  for (const PlannedPyTorchJob& job : planned.pytorch_jobs) {
    for (const PlannedReplicas& of : job.plan.replicas) {
      const Json pod_template = of.pod_template.Unpack();
      add(std::string(ReplicaLabel(of.type)), of.count, RanksOf(PartOf(pod_template, "spec"), kPyTorchContainer));
    }
  }
  if (each) ranks_ = *each * count_;
}

int NodeNumbers::Of(const Json& pod) const {
  const Json& labels = MapField(PartOf(pod, "metadata"), "labels");
  const std::string type = TextField(labels, kReplicaTypeLabel);
  const auto index = ParseInt(TextField(labels, type.empty() ? kIndexLabel : kReplicaIndexLabel));
  const auto first = first_.find(type.empty() ? TextField(labels, kJobNameLabel) : type);
  return index && first != first_.end() ? first->second + static_cast<int>(*index) : -1;
}

Status NodeNumbers::Check(const Drill& drill) const {
  const bool by_rank = drill.target == Drill::Target::kRank;
  const char* kind = by_rank ? "rank" : "node";
  const std::optional<int64_t> count = by_rank ? ranks_ : count_;
  if (!count || drill.number < *count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("--kill {}: there is no {} {}: {}", Quoted(drill.said), kind, drill.number,
                  *count == 0 ? fmt::format("the job has no {}", kind)
                              : fmt::format("the job's {}s are 0 to {}", kind, *count - 1)));
}

}  // namespace muster::local
