// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_hints.h"

#include "base/text.h"

namespace muster::agent {
namespace {

const std::string& HostOf(const TopRow& row) { return row.node != nullptr ? row.node->host : row.lost->host; }

int64_t PidOf(const TopRow& row) {
  if (row.worker != nullptr && row.worker->pid > 0) return row.worker->pid;
  return row.node != nullptr ? row.node->pid : 0;
}

// "-n team hello-node-0-0-abcde -c node"
std::string PodWords(const TopFacts& facts, const TopRow& row) {
  std::string words = facts.name_space.empty() ? "" : fmt::format("-n {} ", facts.name_space);
  const auto pod = facts.pods.find(HostOf(row));
  words += pod != facts.pods.end() ? pod->second : HostOf(row);
  switch (facts.target.kind) {
    case TopTarget::Kind::kTrainJob:
      return words + " -c node";
    case TopTarget::Kind::kPyTorchJob:
      return words + " -c pytorch";
    case TopTarget::Kind::kPod:
    case TopTarget::Kind::kCoordinator:
    case TopTarget::Kind::kAgent:
    case TopTarget::Kind::kLocalJob:
      return words;
  }
  return words;
}

std::string OnHost(const TopRow& row) { return HostOf(row).empty() ? "on its host" : "on host " + HostOf(row); }

}  // namespace

std::string LogWay(const TopFacts& facts, const TopRow& row) {
  if (facts.target.in_cluster()) return "kubectl logs " + PodWords(facts, row);
  if (facts.target.kind == TopTarget::Kind::kLocalJob) {
    if (row.worker != nullptr && row.rank) return fmt::format("muster logs {} --rank {}", facts.target.name, *row.rank);
    return "muster logs " + facts.target.name;
  }
  const int64_t agent = row.node != nullptr ? row.node->pid : 0;
  return fmt::format("{}, where its agent{} writes: its console, or --log-dir", OnHost(row),
                     agent > 0 ? fmt::format(" (process {})", agent) : "");
}

std::string StacksWay(const TopFacts& facts, const TopRow& row) {
  const int64_t pid = PidOf(row);
  if (pid <= 0) return "its process is not known";
  if (facts.target.in_cluster() && row.node != nullptr && row.node->pid > 0) {
    // The agent's own binary, wherever it is in the container.
    return fmt::format("kubectl exec {} -- /proc/{}/exe stacks {}", PodWords(facts, row), row.node->pid, pid);
  }
  return fmt::format("{}: muster stacks {}", OnHost(row), pid);
}

}  // namespace muster::agent
