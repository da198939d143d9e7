// SPDX-License-Identifier: Apache-2.0
// Writes the pod's termination message when an agent ends (base/termination_message.h).
//
// Agents may be nested (`muster exec` around a torchrun that is `muster run`), and the user's command may write to the
// same file. An agent removes a message of Muster's before its workers start, so a message that it finds at its end was
// written by an agent inside. If a command runs several torchruns one after another, the last one's message counts.
//
//   what the agent finds in the file at its end                 what becomes of it
//   the one command of a `muster exec` (IsOneCommand) had a run inside:
//     which ended with the same code       its message stays: it knows its node rank, round, restarts and last cause.
//                                          If this agent restarted the command, or classes the code differently, it
//                                          writes that message with its own class and the restarts of both
//     which ended with another code        ours, with its node rank, round and restarts. A failure inside stays the
//                                          cause, and inner_exit_code tells its code, whatever the command ended with
//   the workers of any other job:
//     a message of ours with this exit code and a root cause    stays: an agent inside wrote it
//   the command's own text, and the end is a success            stays
//   the command's own text, and the end is a failure            becomes the root cause's message, if there is none
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/workers/run_options.h"
#include "base/termination_message.h"
#include "rendezvous/round.h"

namespace muster::agent {

// How this agent's job ended, as far as this agent knows.
struct JobEnd {
  int exit_code = 0;
  std::string reason;                                // used without a verdict
  std::optional<ExitClass> exit_class = {};          // by the launcher's rules; unset: by this agent's
  std::string node, host;                            // this node
  std::optional<rendezvous::Assignment> assignment;  // the last round
  std::optional<rendezvous::Verdict> verdict;
  std::optional<RunTime> time;
  std::optional<TrainingFacts> training;
};

// True for a `muster exec` with one command on one node: it has no rank, and a run may be inside it. Pure.
bool IsOneCommand(const RunOptions& options);

// The message in the file's `text` from the run inside the command; nullopt: none, or IsOneCommand() is false. Pure.
std::optional<TerminationMessage> InnerRun(const RunOptions& options, std::string_view text);

// A warning for the console: the command ended with 0, but the run inside it failed. Pure.
std::string HiddenFailure(const TerminationMessage& inner);

// This agent's message, whatever the file holds. Pure.
TerminationMessage MessageOf(const JobEnd& end, const RunOptions& options);

// The message to write, by the rules above, if the file holds `text`; nullopt: leave the file as it is. Pure.
std::optional<TerminationMessage> Heard(const JobEnd& end, const RunOptions& options, std::string_view text);

// Empties the file at `path` of Muster's message from an earlier start or round. Call it before a worker starts.
void ForgetTerminationMessage(const std::string& path);

// Writes the message of Heard() to options.termination_log. Nothing if there is no such file; other errors are logged
// as a warning. Call it once, as the last thing before the process ends.
void LeaveTerminationMessage(const JobEnd& end, const RunOptions& options);

}  // namespace muster::agent
