// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_table.h"

#include <algorithm>
#include <cmath>

#include "agent/live/terminal_text.h"
#include "agent/live/top_text.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr size_t kWidestNode = 24;
constexpr size_t kNarrowestNode = 4;
constexpr size_t kRoomOfLastLine = 16;  // or none
constexpr size_t kWide = 70;            // from here on the last line has room before less important columns
constexpr size_t kWidestRank = 12;

struct FieldFacts {
  TopField field;
  std::string_view title;
  size_t width;  // with a title that fits
  Line::Side side;
  int importance;  // 0 is the first to get room
};
constexpr Line::Side kLeft = Line::Side::kLeft, kRight = Line::Side::kRight;
constexpr FieldFacts kFields[] = {
    {TopField::kRank, "RANK", 4, kRight, 0},          {TopField::kNode, "NODE", kNarrowestNode, kLeft, 1},
    {TopField::kState, "STATE", 9, kLeft, 2},         {TopField::kRound, "ROUND", 5, kRight, 11},
    {TopField::kHeard, "HEARD", 5, kRight, 8},        {TopField::kCpu, "CPU%", 4, kRight, 3},
    {TopField::kMemory, "MEM", 5, kRight, 4},         {TopField::kGpu, "GPU%", 4, kRight, 5},
    {TopField::kGpuMemory, "GMEM", 5, kRight, 9},     {TopField::kPosition, "POS", 7, kRight, 7},
    {TopField::kStepTime, "STEP", 5, kRight, 6},      {TopField::kSilent, "SILENT", 6, kRight, 10},
    {TopField::kLastLine, "LAST LINE", 0, kLeft, 12},
};

const FieldFacts& FactsOf(TopField field) { return kFields[static_cast<size_t>(field)]; }

std::string RankText(const TopRow& row) {
  if (!row.rank) return kUnknownCell;
  if (row.worker != nullptr || row.workers <= 1) return fmt::format("{}", *row.rank);
  return fmt::format("{}-{}", *row.rank, *row.rank + row.workers - 1);
}

std::string PercentCell(double share) {
  return std::isfinite(share) ? fmt::format("{:.0f}", std::clamp(share, 0.0, 999.99) * 100) : kUnknownCell;
}

std::string CellText(const TopRow& row, TopField field, rendezvous::RoundId round, Duration age) {
  switch (field) {
    case TopField::kRank:
      return RankText(row);
    case TopField::kNode:
      return row.NodeName();
    case TopField::kState:
      return row.state;
    case TopField::kRound: {
      if (row.node == nullptr || !row.node->rank) return kUnknownCell;
      const auto& telemetry = row.node->telemetry;
      return fmt::format("{}", telemetry ? telemetry->round.number : round.number);
    }
    case TopField::kHeard:
      return ShortAge(row.last_heard() + age);
    case TopField::kCpu:
      return CellOf(row.cpus, PercentCell);
    case TopField::kMemory:
      return CellOf(row.memory_bytes, ShortBytes);
    case TopField::kGpu:
      return CellOf(row.gpu_share, PercentCell);
    case TopField::kGpuMemory:
      return CellOf(row.gpu_memory_bytes, ShortBytes);
    case TopField::kPosition:
      return CellOf(row.position, ShortPosition);
    case TopField::kStepTime:
      return CellOf(row.step_time, ShortSpan);
    case TopField::kSilent:
      return CellOf(row.silent, ShortAge);
    case TopField::kLastLine:
      return std::string(row.last_line);
  }
  return "";
}

Style CellStyle(const TopRow& row, TopField field) {
  if (row.node == nullptr || row.failed) return {.ink = Ink::kRed};
  if (field == TopField::kLastLine) return {.ink = Ink::kDim};
  const bool slow = !row.node->remark.empty();
  if (field == TopField::kNode && slow) return {.ink = Ink::kYellow};
  if (field != TopField::kState) return {};
  if (row.state == "running") return {.ink = Ink::kGreen};
  if (row.state == "succeeded" || row.state == "done") return {.ink = Ink::kCyan};
  return {.ink = Ink::kYellow};
}

bool IsSortedBy(TopField field, TopSort sort) {
  switch (sort) {
    case TopSort::kRank:
      return field == TopField::kRank;
    case TopSort::kCpu:
      return field == TopField::kCpu;
    case TopSort::kMemory:
      return field == TopField::kMemory;
    case TopSort::kStepTime:
      return field == TopField::kStepTime;
    case TopSort::kSilent:
      return field == TopField::kSilent;
  }
  return false;
}

}  // namespace

std::vector<TopColumn> ColumnsFor(const LiveView& view, const std::vector<TopRow>& rows, size_t columns) {
  size_t node = kNarrowestNode, rank = FactsOf(TopField::kRank).width;
  for (const TopRow& row : rows) {
    node = std::max(node, Shown(row.NodeName(), kWidestNode).columns);
    rank = std::max(rank, std::min(RankText(row).size(), kWidestRank));
  }
  const bool gpus = TellsGpus(view);
  std::vector<const FieldFacts*> wanted;
  for (const FieldFacts& facts : kFields) {
    const bool of_gpu = facts.field == TopField::kGpu || facts.field == TopField::kGpuMemory;
    if (facts.field != TopField::kLastLine && (gpus || !of_gpu)) wanted.push_back(&facts);
  }
  std::sort(wanted.begin(), wanted.end(),
            [](const FieldFacts* a, const FieldFacts* b) { return a->importance < b->importance; });
  const size_t room = columns >= kWide ? columns - kRoomOfLastLine - 1 : columns;
  size_t used = 0;
  std::vector<TopColumn> table;
  for (const FieldFacts* facts : wanted) {
    size_t width = facts->width;
    if (facts->field == TopField::kNode) width = std::min(node, std::max(kNarrowestNode, columns / 4));
    if (facts->field == TopField::kRank) width = rank;
    const size_t gap = table.empty() ? 0 : 1;
    if (used + gap + width > room) continue;
    used += gap + width;
    table.push_back({facts->field, width});
  }
  if (columns > used + kRoomOfLastLine) table.push_back({TopField::kLastLine, columns - used - 1});
  std::sort(table.begin(), table.end(), [](const TopColumn& a, const TopColumn& b) { return a.field < b.field; });
  return table;
}

Line TitlesOf(const std::vector<TopColumn>& table, const TopChoice& choice, size_t columns) {
  Line line(columns);
  for (const TopColumn& column : table) {
    if (line.columns() > 0) line.Add(" ", {.reverse = true});
    const FieldFacts& facts = FactsOf(column.field);
    const bool sorted = IsSortedBy(column.field, choice.sort);
    line.Cell(facts.title, column.width, facts.side, {.bold = sorted, .reverse = true});
  }
  return line;
}

Line LineOf(const TopRow& row, const std::vector<TopColumn>& table, rendezvous::RoundId round, Duration age,
            size_t columns) {
  Line line(columns);
  for (const TopColumn& column : table) {
    if (line.columns() > 0) line.Add(" ");
    line.Cell(CellText(row, column.field, round, age), column.width, FactsOf(column.field).side,
              CellStyle(row, column.field));
  }
  return line;
}

}  // namespace muster::agent
