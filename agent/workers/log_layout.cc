// SPDX-License-Identifier: Apache-2.0
#include "agent/workers/log_layout.h"

#include <algorithm>

#include "agent/workers/text_template.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr int kStdout = 1;
constexpr int kStderr = 2;

std::string Within(const std::string& folder, const std::string& name) {
  return folder.empty() ? std::string() : fmt::format("{}/{}", folder, name);
}

struct StreamFiles {
  std::string own;
  std::string filtered;
};

launcher::StreamSpec Stream(const RunOptions::Logs& logs, int bit, int local_rank, const StreamFiles& files,
                            const std::vector<std::string>& filters) {
  bool teed = (logs.tee.For(local_rank) & bit) != 0;
  bool redirected = (logs.redirects.For(local_rank) & bit) != 0;
  const std::vector<int>& only = logs.local_ranks_filter;
  bool heard = only.empty() || std::find(only.begin(), only.end(), local_rank) != only.end();

  launcher::StreamSpec stream;
  if (teed || redirected) stream.file = files.own;
  stream.console = heard && (teed || stream.file.empty());
  if (teed && heard && !files.filtered.empty() && !filters.empty()) {
    stream.filters = filters;
    stream.filter_file = files.filtered;
  }
  return stream;
}

}  // namespace

std::string AttemptPaths::WorkerFolder(int local_rank) const { return Within(folder, std::to_string(local_rank)); }
std::string AttemptPaths::StdoutFile(int local_rank) const { return Within(WorkerFolder(local_rank), "stdout.log"); }
std::string AttemptPaths::StderrFile(int local_rank) const { return Within(WorkerFolder(local_rank), "stderr.log"); }
std::string AttemptPaths::ErrorFile(int local_rank) const { return Within(WorkerFolder(local_rank), "error.json"); }
std::string AttemptPaths::HeartbeatFile(int local_rank) const { return Within(WorkerFolder(local_rank), "heartbeat"); }
std::string AttemptPaths::FilteredStdoutFile() const { return Within(folder, "filtered_stdout.log"); }
std::string AttemptPaths::FilteredStderrFile() const { return Within(folder, "filtered_stderr.log"); }

std::string LinePrefix(const RunOptions& options, const rendezvous::Assignment& assignment, int local_rank) {
  if (options.logs.line_prefix_template.empty()) return fmt::format("[{}{}]:", options.workers.role, local_rank);
  const std::string& host = assignment.seat.node.host;
  return SafeSubstitute(options.logs.line_prefix_template,
                        {{"role_name", options.workers.role},
                         {"local_rank", std::to_string(local_rank)},
                         {"rank", std::to_string(assignment.seat.first_rank + local_rank)},
                         {"hostname", host.substr(0, host.find('.'))}});
}

launcher::OutputSpec WorkerOutput(const RunOptions& options, const rendezvous::Assignment& assignment, int local_rank,
                                  const AttemptPaths& paths, const Terminals& terminals) {
  launcher::OutputSpec output;
  output.out = Stream(options.logs, kStdout, local_rank, {paths.StdoutFile(local_rank), paths.FilteredStdoutFile()},
                      options.logs.duplicate_stdout_filters);
  output.err = Stream(options.logs, kStderr, local_rank, {paths.StderrFile(local_rank), paths.FilteredStderrFile()},
                      options.logs.duplicate_stderr_filters);
  int teed = options.logs.tee.For(local_rank);
  std::string prefix = LinePrefix(options, assignment, local_rank);
  if ((teed & kStdout) != 0) output.out.prefix = prefix;
  if ((teed & kStderr) != 0) output.err.prefix = prefix;
  // A program that draws on the terminal gets the terminal itself; any other stderr may go through a pipe.
  bool bare = output.err.console && output.err.file.empty() && output.err.prefix.empty();
  output.err.keep_tail = !(bare && terminals.err);
  output.out.observed = output.err.observed = options.hang.log_timeout.has_value();
  // A plain command's stdout may be no text, for another program.
  if (options.progress.read && options.wire != Wire::kPlain && !terminals.out) output.out.observed = true;
  return output;
}

}  // namespace muster::agent
