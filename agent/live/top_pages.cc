// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_pages.h"

#include "agent/live/terminal_text.h"
#include "agent/live/top_hints.h"
#include "agent/live/top_text.h"
#include "agent/report/report_text.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr Style kTitle{.bold = true};
constexpr Style kFaint{.ink = Ink::kDim};
constexpr size_t kLabel = 14;        // columns
constexpr size_t kMostOfText = 200;  // lines of one text

class Page {
 public:
  explicit Page(size_t columns) : columns_(columns) {}

  void Title(std::string_view text) { Put(std::move(Line(columns_).Add(text, kTitle))); }
  void Blank() { Put(Line(columns_)); }
  // Nothing for an empty value. A long one goes on in the next lines.
  void Field(std::string_view label, std::string_view value) {
    const size_t room = columns_ > kLabel ? columns_ - kLabel : 0;
    for (const std::string& part : Wrapped(value, room, kMostOfText)) {
      Line line(columns_);
      line.Cell(label, kLabel, Line::Side::kLeft, kFaint).Add(part);
      Put(std::move(line));
      label = "";
    }
  }
  template <class Value, class Function>
  void Field(std::string_view label, const std::optional<Value>& value, Function text) {
    if (value) Field(label, text(*value));
  }
  void Text(std::string_view text, Style style = {}) {
    if (text.empty()) Blank();
    for (const std::string& part : Wrapped(text, columns_, kMostOfText)) {
      Put(std::move(Line(columns_).Add(part, style)));
    }
  }
  std::vector<Line> Take() { return std::move(lines_); }

 private:
  void Put(Line line) {
    if (lines_.size() < kMostPageLines) lines_.push_back(std::move(line));
  }

  const size_t columns_;
  std::vector<Line> lines_;
};

std::string AgeText(Duration age) { return LongSpan(age) + " ago"; }
std::string CoresText(double cpus) { return fmt::format("{:.2f} cores", cpus); }

std::string NameOf(const TopRow& row) {
  if (row.worker == nullptr) return "node " + row.NodeName();
  return row.rank ? fmt::format("rank {} on {}", *row.rank, row.NodeName())
                  : fmt::format("worker {} of {}", row.worker->local_rank, row.NodeName());
}

void AddNode(const LiveView& view, const TopRow& row, Duration age, Page* page) {
  page->Field("heard", AgeText(row.last_heard() + age));
  if (row.lost != nullptr) {
    page->Field("host", row.lost->host);
    page->Field("lost", fmt::format("{}: {}", AgeText(row.lost->lost + age), row.last_line));
    return;
  }
  const rendezvous::StatusLine& node = *row.node;
  page->Field("host", node.host);
  page->Field("address", node.control_address);
  page->Field("node rank", node.rank, [](int rank) { return fmt::format("{}", rank); });
  page->Field("workers", fmt::format("{}", node.slots));
  if (node.pid > 0) page->Field("agent", fmt::format("process {}", node.pid));
  const rendezvous::RoundId round = node.telemetry ? node.telemetry->round : view.report.round;
  page->Field("round", fmt::format("{} (term {}), after {}", round.number, round.term,
                                   Counted(view.report.restart_count, "restart")));
  page->Field("remark", node.remark);
}

void AddWorker(const TopRow& row, Page* page) {
  if (row.worker != nullptr) {
    if (row.worker->pid > 0) page->Field("process", fmt::format("{}", row.worker->pid));
    page->Field("local rank", fmt::format("{}", row.worker->local_rank));
    page->Field("exit code", row.worker->exit_code, [](int code) { return fmt::format("{}", code); });
  }
  page->Field("cpu", row.cpus, CoresText);
  page->Field("memory", row.memory_bytes, FormatBytes);
  page->Field("gpu", row.gpu_share, ShareText);
  page->Field("gpu memory", row.gpu_memory_bytes, FormatBytes);
  if (row.position) {
    std::string position = ShortPosition(*row.position);
    if (row.worker != nullptr && row.worker->end) position += " of " + ShortPosition(*row.worker->end);
    page->Field(row.worker != nullptr && row.worker->in_epochs ? "epoch" : "step", position);
  }
  if (row.worker != nullptr) {
    if (!row.worker->in_epochs) page->Field("epoch", row.worker->epoch, ShortPosition);
    page->Field("loss", row.worker->loss, ShortLoss);
  }
  page->Field("step time", row.step_time, LongSpan);
  page->Field("last output", row.silent, AgeText);
  page->Field("last line", row.last_line);
}

void AddText(const TopState& state, Page* page) {
  if (state.text_title.empty()) return;
  page->Blank();
  page->Title(state.text_title);
  for (const std::string& line : state.text) page->Text(line);
}

void AddDetails(const LiveView& view, const TopState& state, TimePoint now, Page* page) {
  const std::vector<TopRow> rows = RowsOf(view, state.choice);
  const TopRow* row = SelectedRow(rows, state);
  if (row == nullptr) return page->Text(fmt::format("node {} is not in the report any more", state.selected.node));
  page->Title(NameOf(*row));
  page->Field("state", row->state);
  AddNode(view, *row, now - state.facts.came, page);
  AddWorker(*row, page);
  page->Field("log", LogWay(state.facts, *row));
  page->Field("stacks", StacksWay(state.facts, *row));
  AddText(state, page);
}

void AddStacks(const LiveView& view, const TopState& state, Page* page) {
  const std::vector<TopRow> rows = RowsOf(view, state.choice);
  const TopRow* row = SelectedRow(rows, state);
  if (row == nullptr) return page->Text(fmt::format("node {} is not in the report any more", state.selected.node));
  page->Title("stacks of " + NameOf(*row));
  page->Field("command", StacksWay(state.facts, *row));
  AddText(state, page);
}

struct HelpLine {
  std::string_view key, does;
};
constexpr HelpLine kHelp[] = {
    {"arrows, PgUp, PgDn, Home, End", "move; Home lets go of the selected row"},
    {"s", "sort by the next of: rank, cpu, memory, step time, silent"},
    {"r", "reverse the order"},
    {"/", "show only rows with a text in node, state or last line"},
    {"n", "one row for each node, or for each rank"},
    {"Enter", "all about the selected rank, and the end of its log"},
    {"k, S", "the stacks of the selected rank"},
    {"p", "pause, and go on"},
    {"?, h", "this page"},
    {"Esc, q", "back to the table; there: no filter, or quit"},
    {"Ctrl-C", "quit; the run goes on"},
};
constexpr HelpLine kColumns[] = {
    {"RANK NODE STATE", "the rank of the worker, or of the first worker of a node"},
    {"ROUND HEARD", "the round of these workers; since the node was heard"},
    {"CPU% MEM", "with child processes; 100% is one core"},
    {"GPU% GMEM", "of its GPUs, if a node tells it"},
    {"POS STEP", "steps or epochs done, by its output; the median time of one"},
    {"SILENT", "since its last output"},
    {"rounds",
     "green: workers ran. Marks: red after a failure, yellow after a preemption, blue when nodes came or left"},
};
constexpr size_t kKeys = 31;  // columns

void AddHelp(size_t columns, Page* page) {
  const auto add = [&](const HelpLine& help) {
    if (columns < kKeys + kLabel) {
      page->Text(help.key, kTitle);
      page->Text(fmt::format("  {}", help.does));
      return;
    }
    std::string_view key = help.key;
    for (const std::string& part : Wrapped(help.does, columns - kKeys, kMostOfText)) {
      page->Text(fmt::format("{:<{}}{}", key, kKeys, part));
      key = "";
    }
  };
  page->Title("keys");
  for (const HelpLine& help : kHelp) add(help);
  page->Blank();
  page->Title("columns");
  for (const HelpLine& help : kColumns) add(help);
}

}  // namespace

std::vector<Line> PageLines(const LiveView& view, const TopState& state, Size size, TimePoint now) {
  Page page(size.columns);
  switch (state.page) {
    case TopPage::kTable:
      break;
    case TopPage::kDetails:
      AddDetails(view, state, now, &page);
      break;
    case TopPage::kStacks:
      AddStacks(view, state, &page);
      break;
    case TopPage::kHelp:
      AddHelp(size.columns, &page);
      break;
  }
  return page.Take();
}

}  // namespace muster::agent
