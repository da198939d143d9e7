// SPDX-License-Identifier: Apache-2.0
#include "agent/watch/metrics.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"

namespace muster::agent {
namespace {

// Builds the text, one metric after the other: HELP, TYPE, then its samples.
class Page {
 public:
  void Begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  // `labels`: "" or `a="b",c="d"`.
  template <typename Number>
  void Sample(Number value, std::string_view labels = "", std::string_view suffix = "") {
    text_ += labels.empty() ? fmt::format("{}{} {}\n", name_, suffix, value)
                            : fmt::format("{}{}{{{}}} {}\n", name_, suffix, labels, value);
  }
  template <typename Number>
  void One(std::string_view name, std::string_view type, std::string_view help, Number value) {
    Begin(name, type, help);
    Sample(value);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string_view name_;
  std::string text_;
};

std::string Label(std::string_view name, std::string_view value) {
  return fmt::format("{}=\"{}\"", name, EscapeLabel(value));
}

void ByLabel(Page& page, std::string_view label, const std::map<std::string, uint64_t>& samples) {
  for (const auto& [value, count] : samples) page.Sample(count, Label(label, value));
}

void AppendHistogram(Page& page, const RestartHistogram& histogram) {
  uint64_t below = 0;
  for (size_t i = 0; i < kRestartBounds.size(); ++i) {
    below += histogram.counts[i];
    page.Sample(below, fmt::format("le=\"{}\"", kRestartBounds[i]), "_bucket");
  }
  below += histogram.counts.back();
  page.Sample(below, "le=\"+Inf\"", "_bucket");
  page.Sample(histogram.sum, "", "_sum");
  page.Sample(below, "", "_count");
}

void AppendBuild(Page& page, std::string_view version, std::string_view commit) {
  page.Begin("muster_build_info", "gauge", "Version of this agent; always 1.");
  page.Sample(1, fmt::format("{},{}", Label("version", version), Label("commit", commit)));
}

void AppendProcess(Page& page, const ProcessMetrics& process) {
  page.One("process_start_time_seconds", "gauge", "Start of the agent in seconds since the Unix epoch.",
           static_cast<double>(process.started_unix_ms) / 1000);
  page.One("process_cpu_seconds_total", "counter", "User and system time of the agent itself.", process.cpu_seconds);
  page.One("process_resident_memory_bytes", "gauge", "Resident memory of the agent itself.", process.resident_bytes);
}

}  // namespace

void RestartHistogram::Add(double seconds) {
  size_t bucket = static_cast<size_t>(std::lower_bound(kRestartBounds.begin(), kRestartBounds.end(), seconds) -
                                      kRestartBounds.begin());
  ++counts[bucket];
  sum += seconds;
}

std::string EscapeLabel(std::string_view value) {
  std::string escaped;
  while (!value.empty()) {
    Utf8Character next = FirstCharacter(value);
    if (!next.valid) {
      escaped += kReplacementCharacter;
    } else if (next.code == '\n') {
      escaped += "\\n";
    } else {
      if (next.code == '\\' || next.code == '"') escaped += '\\';
      escaped += value.substr(0, next.size);
    }
    value.remove_prefix(next.size);
  }
  return escaped;
}

std::string ToExposition(const Metrics& m) {
  Page page;
  AppendBuild(page, m.version, m.commit);
  page.Begin("muster_node_info", "gauge", "The run and this node's name in it; always 1.");
  page.Sample(1, fmt::format("{},{}", Label("run_id", m.run_id), Label("node", m.node)));
  page.One("muster_in_round", "gauge", "1 while this node has a round with running workers, as /readyz says.",
           m.in_round ? 1 : 0);
  page.One("muster_round", "gauge", "Number of the last round this node was in; -1 before the first.", m.round);
  page.One("muster_rounds_total", "counter", "Rounds that were started on this node.", m.rounds);
  page.Begin("muster_restarts_total", "counter", "Rounds that followed another one on this node, by cause.");
  ByLabel(page, "cause", m.restarts);
  page.One("muster_restarts_charged", "gauge", "Restarts of the job that count against its budget.",
           m.restarts_charged);
  page.One("muster_restarts_allowed", "gauge", "The budget of restarts, --max-restarts.", m.restarts_allowed);
  page.Begin("muster_worker_failures_total", "counter", "Workers of this node that failed by themselves, by class.");
  ByLabel(page, "class", m.failures);
  page.Begin("muster_time_to_restart_seconds", "histogram",
             "Time from the first sign of a round's end on this node to the next round's running workers.");
  AppendHistogram(page, m.time_to_restart);
  page.One("muster_time_lost_seconds_total", "counter",
           "Time without running workers between rounds, the present pause included.", m.time_lost_seconds);
  if (const auto goodput = GoodputOf(m.spent)) {
    page.One("muster_goodput_ratio", "gauge",
             "The share of the time since the start of this agent in which work was done that was not done before.",
             *goodput);
  }
  page.Begin("muster_lost_seconds_total", "counter", "Time since the start of this agent that is not in it, by cause.");
  for (size_t use = 0; use < kTimeUses; ++use) {
    if (static_cast<TimeUse>(use) == TimeUse::kTraining) continue;
    page.Sample(std::chrono::duration<double>(m.spent_ended[use]).count(),
                Label("cause", TimeUseName(static_cast<TimeUse>(use))));
  }
  page.One("muster_workers", "gauge", "Workers of this node in a round.", m.workers);
  page.One("muster_workers_running", "gauge", "Workers of this node that run now.", m.workers_running);
  page.One("muster_standby_workers", "gauge", "Standby workers of this node that are ready now.", m.standby_workers);
  page.One("muster_standby_starts_total", "counter", "Workers of this node that began in a standby.", m.standby_starts);
  if (m.first_output_seconds) {
    page.One("muster_first_output_seconds", "gauge",
             "Time from the start of this node's workers in the last round to their first output.",
             *m.first_output_seconds);
  }
  page.One("muster_world_size", "gauge", "Workers of the whole job in the last round.", m.world_size);
  page.One("muster_nodes", "gauge", "Nodes of the job in the last round.", m.nodes);
  if (m.store) {
    page.One("muster_store_operations_total", "counter", "Requests done by the c10d store served here.",
             m.store->operations);
    page.One("muster_store_connections", "gauge", "Connections that are open to that store.", m.store->connections);
    page.One("muster_store_connections_accepted_total", "counter", "Connections that store has accepted.",
             m.store->accepted);
    page.One("muster_store_violations_total", "counter", "Connections closed because of a protocol violation.",
             m.store->violations);
  }
  AppendProcess(page, m.process);
  return page.Take();
}

std::string ToExposition(std::string_view version, std::string_view commit, const ProcessMetrics& process) {
  Page page;
  AppendBuild(page, version, commit);
  AppendProcess(page, process);
  return page.Take();
}

}  // namespace muster::agent
