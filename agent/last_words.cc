#include "agent/last_words.h"

#include "base/log.h"
#include "base/text.h"

namespace muster::agent {

TerminationMessage MessageOf(const JobEnd& end, const RunOptions& options) {
  TerminationMessage message;
  message.exit_code = end.exit_code;
  message.exit_class = end.exit_class.value_or(Classify(end.exit_code, options.job.overrides));
  message.reason = end.verdict ? end.verdict->reason : end.reason;
  if (options.wire == Wire::kTorch || options.max_nodes > 1) message.run_id = options.run_id;
  message.node = end.node;
  message.host = end.host;
  message.max_restarts = options.job.max_restarts;
  if (end.assignment) {
    message.node_rank = end.assignment->node_rank;
    message.round = end.assignment->id.number;
    message.restart_count = end.assignment->restart_count;
  }
  if (end.verdict) message.cause = end.verdict->root_cause;
  return message;
}

std::optional<TerminationMessage> Heard(TerminationMessage ours, std::string_view text) {
  if (Strip(text).empty()) return ours;
  auto inner = ParseTerminationMessage(text);
  if (inner.ok()) {
    if (inner->exit_code == ours.exit_code && inner->cause) return std::nullopt;
    return ours;
  }
  if (ours.exit_code == 0) return std::nullopt;
  // Not where the cause is another node's, whose worker did not write here.
  if (ours.cause && ours.cause->node == ours.node && ours.cause->message.empty()) ours.cause->message = text;
  return ours;
}

void ForgetLastWords(const RunOptions& options) {
  const std::string& path = options.termination_log;
  if (path.empty() || !ParseTerminationMessage(ReadTerminationText(path)).ok()) return;
  WriteTerminationMessage(path, "").IgnoreError();  // what is wrong with the file is said at the end
}

void LeaveLastWords(const JobEnd& end, const RunOptions& options) {
  if (options.termination_log.empty()) return;
  auto message = Heard(MessageOf(end, options), ReadTerminationText(options.termination_log));
  if (!message) return;
  Status status = WriteTerminationMessage(options.termination_log, EncodeTerminationMessage(*message));
  if (!status.ok() && !absl::IsNotFound(status)) log::Warning(Message(status));
}

}  // namespace muster::agent
