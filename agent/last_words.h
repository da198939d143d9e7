// What an agent leaves behind when it ends: the pod's termination message (base/termination_message.h).
//
// Agents may be nested (`muster exec` around a torchrun that is `muster run`), and the user's command may write to the
// same file. An agent removes a message of ours before its workers start, so what it finds at its end was written by
// an agent that ran meanwhile; of several torchruns in one command, one after another, the last one decides.
//
//   the one command of a `muster exec` (IsOneCommand) had a run inside:
//     which ended with the same code       its message stays: it knows its node rank, round, restarts and last cause
//     which ended with another code        ours, with its node rank, round and restarts. A failure inside stays the
//                                          cause, and inner_exit_code tells its code, whatever the command ended with
//   the workers of any other job:
//     a message of ours with this exit code and a root cause    stays: an agent inside said it
//   the command's own text, and the end is a success            stays
//   the command's own text, and the end is a failure            becomes the root cause's message, where there is none
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/torch/run_options.h"
#include "base/termination_message.h"
#include "rendezvous/round.h"

namespace muster::agent {

// How this agent's job ended, as far as it was heard of.
struct JobEnd {
  int exit_code = 0;
  std::string reason;                                // where no verdict says one
  std::optional<ExitClass> exit_class = {};          // where another's rules count; else by our own
  std::string node, host;                            // this node
  std::optional<rendezvous::Assignment> assignment;  // the last round
  std::optional<rendezvous::Verdict> verdict;
};

// A `muster exec` with one command, as the user wrote it, on one node: it has no rank, and a run may be inside it.
// Pure.
bool IsOneCommand(const RunOptions& options);

// What the run inside the command said, where the file holds `text`; nullopt: there was none, or this is not one
// command. Pure.
std::optional<TerminationMessage> InnerRun(const RunOptions& options, std::string_view text);

// For the console, where the command ended with 0 and the run inside it had not. Pure.
std::string HiddenFailure(const TerminationMessage& inner);

// Pure.
TerminationMessage MessageOf(const JobEnd& end, const RunOptions& options);

// What to write where the file holds `text` already; nullopt: leave it. Pure.
std::optional<TerminationMessage> Heard(const JobEnd& end, const RunOptions& options, std::string_view text);

// Empties options.termination_log where it holds a message of ours: of an earlier start, or of an earlier round's
// agent. Call it before a worker is started.
void ForgetLastWords(const RunOptions& options);

// Writes it to options.termination_log, by the rules above. Silent where there is no such file; other troubles are a
// warning. Call it once, as the last thing before the process ends.
void LeaveLastWords(const JobEnd& end, const RunOptions& options);

}  // namespace muster::agent
