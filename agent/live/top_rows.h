// SPDX-License-Identifier: Apache-2.0
// The rows of the table of `muster top`: one for each rank, or one for each node; which of them are shown, and in which
// order. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/live/live_view.h"

namespace muster::agent {

enum class TopSort { kRank, kCpu, kMemory, kStepTime, kSilent };
inline constexpr size_t kTopSorts = 5;
std::string_view TopSortName(TopSort sort);  // "rank", "cpu", "memory", "step time", "silent"

// Names a row in each report, wherever it is in the table.
struct TopRowName {
  std::string node;
  int local_rank = -1;  // -1: the whole node
  bool operator==(const TopRowName&) const = default;
};

// Points into the LiveView. What is not known is empty.
struct TopRow {
  const rendezvous::StatusLine* node = nullptr;       // null: the node is lost
  const rendezvous::LostNode* lost = nullptr;         // then
  const rendezvous::RankTelemetry* worker = nullptr;  // null: a row of the whole node, or the node tells nothing
  int workers = 1;                                    // of this row
  std::optional<int64_t> rank;                        // of the worker; of a node, that of its first worker
  std::string state;
  bool failed = false;  // a worker has ended with another code than 0
  std::optional<double> cpus;
  std::optional<int64_t> memory_bytes;
  std::optional<double> gpu_share;  // of a node: the mean
  std::optional<int64_t> gpu_memory_bytes;
  std::optional<double> position;     // of a node: that of the worker that is furthest
  std::optional<Duration> step_time;  // of a node: the longest
  std::optional<Duration> silent;     // of a node: the longest
  std::string_view last_line;         // of a node: the newest

  TopRowName Name() const;
  const std::string& NodeName() const;
  Duration last_heard() const;
};

struct TopChoice {
  TopSort sort = TopSort::kRank;  // kRank from the lowest, the others from the highest; what is not known comes last
  bool reverse = false;
  bool folded = false;  // one row for each node
  std::string filter;   // only rows with this text in node, state or last line, in any case of letters
};

std::vector<TopRow> RowsOf(const LiveView& view, const TopChoice& choice);

// Whether any worker tells of GPUs.
bool TellsGpus(const LiveView& view);

}  // namespace muster::agent
