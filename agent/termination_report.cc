// SPDX-License-Identifier: Apache-2.0
#include "agent/termination_report.h"

#include <unistd.h>

#include <cerrno>

#include "base/log.h"
#include "base/text.h"

namespace muster::agent {
namespace {

// The message of a command with a run inside; nullopt: keep `inner`. `by_itself`: the command was not stopped.
std::optional<TerminationMessage> Together(TerminationMessage ours, const TerminationMessage& inner, bool by_itself) {
  const bool same = inner.exit_code == ours.exit_code;
  if (same && inner.exit_class == ours.exit_class && ours.restart_count == 0) return std::nullopt;
  if (same) {
    ours.reason = inner.reason;
  } else {
    ours.inner_exit_code = inner.exit_code;
    if (by_itself && inner.exit_code != 0) {
      const std::string how =
          fmt::format("the run inside it ended with exit code {}: {}", inner.exit_code, inner.reason);
      ours.reason = ours.exit_code == 0 ? fmt::format("the command ended with 0, but {}", how)
                                        : fmt::format("{}; {}", ours.reason, how);
    }
  }
  if (ours.cause && ours.cause->node == ours.node) ours.cause->node = inner.node;
  ours.run_id = inner.run_id;
  ours.node = inner.node;
  ours.host = inner.host;
  ours.node_rank = inner.node_rank;
  ours.time = inner.time;
  ours.training = inner.training;
  ours.round = inner.round;
  ours.restart_count += inner.restart_count;
  ours.max_restarts += inner.max_restarts;
  ours.budget_used = ours.budget_used || (inner.budget_used && ours.exit_code == inner.exit_code);
  const bool inner_decides = same || (by_itself && inner.exit_code != 0) || !ours.cause;
  if (inner.cause && inner_decides) ours.cause = inner.cause;
  return ours;
}

}  // namespace

bool IsOneCommand(const RunOptions& options) {
  return options.wire != Wire::kTorch && options.job.shared.max_nodes == 1 && options.workers.nproc == 1 &&
         !options.rsh.serve;
}

std::optional<TerminationMessage> InnerRun(const RunOptions& options, std::string_view text) {
  if (!IsOneCommand(options) || Strip(text).empty()) return std::nullopt;
  auto inner = ParseTerminationMessage(text);
  return inner.ok() ? std::optional(*std::move(inner)) : std::nullopt;
}

std::string HiddenFailure(const TerminationMessage& inner) {
  return fmt::format(
      "the command ended with 0, but the run inside it with exit code {}: the pod counts as succeeded; if it is to "
      "fail, "
      "let the command keep that code (`set -o pipefail` before a pipe)",
      inner.exit_code);
}

TerminationMessage MessageOf(const JobEnd& end, const RunOptions& options) {
  TerminationMessage message;
  message.exit_code = end.exit_code;
  message.exit_class = end.exit_class.value_or(Classify(end.exit_code, options.job.shared.overrides));
  message.reason = end.verdict ? end.verdict->reason : end.reason;
  if (options.wire == Wire::kTorch || options.job.shared.max_nodes > 1) message.run_id = options.job.run_id;
  message.node = end.node;
  message.host = end.host;
  message.max_restarts = options.job.shared.max_restarts;
  if (end.assignment) {
    message.node_rank = end.assignment->node_rank;
    message.round = end.assignment->id.number;
    message.restart_count = end.assignment->restart_count;
  }
  if (end.verdict) message.cause = end.verdict->root_cause;
  if (end.verdict) message.budget_used = end.verdict->budget_used;
  message.time = end.time;
  message.training = end.training;
  return message;
}

std::optional<TerminationMessage> Heard(const JobEnd& end, const RunOptions& options, std::string_view text) {
  TerminationMessage ours = MessageOf(end, options);
  if (Strip(text).empty()) return ours;
  auto inner = ParseTerminationMessage(text);
  if (inner.ok() && IsOneCommand(options)) {
    return Together(std::move(ours), *inner, end.verdict && end.exit_code != kExitHang);
  }
  if (inner.ok()) {
    if (inner->exit_code == ours.exit_code && inner->cause) return std::nullopt;
    return ours;
  }
  if (ours.exit_code == 0) return std::nullopt;
  // Only for a cause of this node: the worker of another node did not write here.
  if (ours.cause && ours.cause->node == ours.node && ours.cause->message.empty()) ours.cause->message = text;
  return ours;
}

void ForgetTerminationMessage(const std::string& path) {
  if (path.empty() || !ParseTerminationMessage(ReadTerminationText(path)).ok()) return;
  WriteTerminationMessage(path, "").IgnoreError();  // LeaveTerminationMessage() warns of what is wrong with the file
}

void LeaveTerminationMessage(const JobEnd& end, const RunOptions& options) {
  if (options.termination_log.empty()) return;
  // Outside Kubernetes there is usually no such file: then nothing need be encoded.
  if (access(options.termination_log.c_str(), F_OK) != 0 && errno == ENOENT) return;
  auto message = Heard(end, options, ReadTerminationText(options.termination_log));
  if (!message) return;
  Status status = WriteTerminationMessage(options.termination_log, EncodeTerminationMessage(*message));
  if (!status.ok() && !absl::IsNotFound(status)) log::Warning(Message(status));
}

}  // namespace muster::agent
