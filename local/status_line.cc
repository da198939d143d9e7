// SPDX-License-Identifier: Apache-2.0
#include "local/status_line.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/text.h"
#include "controller/plan/pytorch_plan.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr size_t kMostPods = 4096;  // pods that are remembered
constexpr size_t kMostDownload = 200;
constexpr std::string_view kCut = "...";

std::string Printable(std::string_view text) {
  std::string shown;
  for (const char c : text) shown += c >= ' ' && c <= '~' ? c : '?';
  return shown;
}

std::optional<int> IntOf(std::string_view text) {
  const auto number = ParseInt(text);
  if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*number);
}

struct Round {
  int number = 0, workers = 0, ranks = 0;
};

// "round 1: this is node 0 of 2, 2 workers of 4; why"
std::optional<Round> ReadRound(std::string_view text) {
  const std::vector<std::string_view> words = Words(text.substr(0, text.find(';')));
  if (words.size() != 12 || words[0] != "round" || !words[1].ends_with(":") || words[10] != "of") return std::nullopt;
  const auto number = IntOf(words[1].substr(0, words[1].size() - 1)), workers = IntOf(words[8]),
             ranks = IntOf(words[11]);
  if (!number || !workers || !ranks) return std::nullopt;
  return Round{.number = *number, .workers = *workers, .ranks = *ranks};
}

// "12.0 MB of 50.0 MB, 3 of 10 files, 5.0 MB/s, 8 s left": what comes before the rate.
std::optional<std::string_view> ReadDownload(std::string_view text) {
  constexpr std::string_view kFiles = " files";
  const std::vector<std::string_view> parts = Split(text, ',');
  if (parts.size() < 3 || !parts[1].ends_with(kFiles) || parts[0].find(" of ") == std::string_view::npos ||
      parts[1].find(" of ") == std::string_view::npos || !parts[2].ends_with("/s")) {
    return std::nullopt;
  }
  return text.substr(0, std::min(kMostDownload, parts[0].size() + 1 + parts[1].size()));
}

}  // namespace

std::string StatusLine(const StatusFacts& facts, int width) {
  std::vector<std::string> parts = {fmt::format("{}: {}", facts.name, facts.state.empty() ? "Starting" : facts.state)};
  if (!facts.download.empty()) parts.push_back(facts.download);
  if (facts.round) parts.push_back(fmt::format("round {}", *facts.round));
  if (facts.ranks > 0) {
    parts.push_back(fmt::format("{} of {} ready", facts.ranks_ready, Counted(facts.ranks, "rank")));
  } else if (facts.nodes > 0) {
    parts.push_back(fmt::format("{} of {} ready", facts.nodes_ready, Counted(facts.nodes, "node")));
  }
  if (facts.restarts_left) parts.push_back(Counted(*facts.restarts_left, "restart") + " left");
  std::string line = Printable(Join(parts, " | "));
  // The last column stays free: some terminals wrap there.
  const size_t room = width > 1 ? static_cast<size_t>(width) - 1 : 0;
  if (line.size() <= room) return line;
  if (room < kCut.size()) return "";
  return line.substr(0, room - kCut.size()) + std::string(kCut);
}

void StatusView::Take(const std::string& pod, std::string_view line) {
  const size_t begins = line.find(kOwnLines);
  if (begins == std::string_view::npos) return;
  line.remove_prefix(begins + kOwnLines.size());
  const auto has_room = [&pod](const auto& map) { return map.size() < kMostPods || map.contains(pod); };
  if (const auto round = ReadRound(line); round && has_room(workers_)) {
    round_ = round->number;
    ranks_ = round->ranks;
    workers_[pod] = round->workers;
  }
  if (const auto download = ReadDownload(line); download && has_room(downloads_)) downloads_[pod] = *download;
}

StatusFacts StatusView::Facts(const LocalJobState& job, const std::vector<PodRecord>& pods) const {
  StatusFacts facts{.name = job.name, .state = job.state, .round = round_, .ranks = ranks_};
  if (job.budget < kUnlimitedRestarts) facts.restarts_left = std::max(0, job.budget - job.restarts);
  std::set<int> nodes;
  for (const PodRecord& pod : pods) {
    if (pod.node_rank >= 0) nodes.insert(pod.node_rank);
    if (pod.ended) continue;
    if (const auto download = downloads_.find(pod.name); download != downloads_.end() && pod.node_rank < 0) {
      facts.download = download->second;
    }
    if (pod.node_rank < 0 || !pod.ready) continue;
    ++facts.nodes_ready;
    if (const auto workers = workers_.find(pod.name); workers != workers_.end()) facts.ranks_ready += workers->second;
  }
  facts.nodes = static_cast<int>(nodes.size());
  facts.ranks_ready = std::min(facts.ranks_ready, facts.ranks);
  return facts;
}

}  // namespace muster::local
