// SPDX-License-Identifier: Apache-2.0
#include "base/collective_timeout.h"

#include <string_view>

#include "base/peer_loss.h"
#include "base/text.h"

namespace muster {
namespace {

constexpr size_t kMostMissing = 100;  // bytes of a list of ranks
constexpr std::string_view kBarrier = "monitoredBarrier";

bool Holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Whether the line says that an operation took too long; connecting is none.
bool ReportsTimeout(std::string_view line) {
  const std::string lower = Lower(line);
  const bool timeout = Holds(lower, "timed out") || Holds(lower, "timeout") || Holds(line, kBarrier);
  return timeout && !Holds(lower, "connect") && ReportsLostPeer(line);
}

// "ALLREDUCE" of "WorkNCCL(SeqNum=808, OpType=ALLREDUCE, ...".
std::string OperationOf(std::string_view line) {
  constexpr std::string_view kType = "OpType=";
  if (Holds(line, kBarrier)) return std::string(kBarrier);
  const size_t type = line.find(kType);
  if (type == std::string_view::npos) return "";
  line.remove_prefix(type + kType.size());
  return std::string(line.substr(0, std::min(line.find_first_of(",) "), kMostMissing)));
}

// "rank 1" of "1", "ranks 4, 5" of "4, 5"; "" of anything else.
std::string Ranks(std::string_view list) {
  const bool ranks = !list.empty() && list.find_first_not_of("0123456789, ") == std::string_view::npos;
  if (!ranks || list.size() > kMostMissing) return "";
  return fmt::format("{} {}", Holds(list, ",") ? "ranks" : "rank", list);
}

// "4, 5" of "Ranks 4, 5 failed to pass monitoredBarrier", or of "[4, 5] finished collective #807, but didn't join ...".
std::string MissingIn(std::string_view line) {
  struct Form {
    std::string_view before, after;
  };
  constexpr Form kForms[] = {
      {"Rank ", " failed to pass monitoredBarrier"},
      {"Ranks ", " failed to pass monitoredBarrier"},
      {"[", "] finished collective #"},
      {"ranks [", "] are the lagging ranks"},
      {"/job:jax_worker/replica:0/task:", ""},
  };
  for (const Form& form : kForms) {
    const std::string_view head = line.substr(0, form.after.empty() ? line.size() : line.find(form.after));
    const size_t begin = head.rfind(form.before);
    if (begin == std::string_view::npos || (head.size() == line.size() && !form.after.empty())) continue;
    if (std::string ranks = Ranks(head.substr(begin + form.before.size())); !ranks.empty()) return ranks;
  }
  return "";
}

}  // namespace

std::optional<CollectiveTimeout> FindCollectiveTimeout(const std::vector<WorkerFailure>& failures) {
  std::optional<CollectiveTimeout> found;
  for (const WorkerFailure& failure : failures) {
    bool of_this = false;  // this failure is a timeout
    std::vector<std::string> lines = failure.stderr_tail;
    lines.insert(lines.begin(), OwnLine(failure));
    for (const std::string& line : lines) {
      of_this |= ReportsTimeout(line);
      if (!of_this) continue;
      if (!found) found.emplace();
      if (found->operation.empty()) found->operation = OperationOf(line);
      if (found->missing.empty()) found->missing = MissingIn(line);
    }
  }
  return found;
}

}  // namespace muster
