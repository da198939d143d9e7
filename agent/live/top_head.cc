// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_head.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "agent/live/terminal_text.h"
#include "agent/live/top_text.h"
#include "base/text.h"

namespace muster::agent {

using rendezvous::RoundCause;
using rendezvous::RoundMark;
using rendezvous::StatusReport;

namespace {

constexpr Duration kStale = std::chrono::seconds(4);
constexpr size_t kMostWarnings = 5;
constexpr size_t kWidestBar = 30;
constexpr double kLeastLoss = 0.005;  // a share of the time that is worth a word

constexpr Style kTitle{.bold = true};
constexpr Style kFaint{.ink = Ink::kDim};

std::string Repeated(std::string_view glyph, size_t count) {
  std::string text;
  while (count-- > 0) text += glyph;
  return text;
}

// The parts with dots between them. A part that has no room is left out.
void AddParts(const std::vector<std::string>& parts, Line* line) {
  const size_t begin = line->columns();
  for (const std::string& part : parts) {
    const std::string text = (line->columns() == begin ? "" : " · ") + part;
    if (Shown(text, line->room()).whole) line->Add(text);
  }
}

Ink PhaseInk(std::string_view phase) {
  if (phase == "running") return Ink::kGreen;
  if (phase == "finished") return Ink::kCyan;
  return Ink::kYellow;
}

// The run's id is often a number that says nothing. An agent of an older version does not tell the name of its job.
std::string JobOf(const LiveView& view, const TopTarget& target) {
  const bool names_job = target.kind != TopTarget::Kind::kPod;  // the name is empty if the target is an address
  return view.job.empty() && names_job ? target.name : view.job;
}

Line TitleLine(const LiveView& view, const TopState& state, Size size, TimePoint now) {
  const Duration age = now - state.facts.came;
  std::string right = state.facts.target.Text();
  Style style = kFaint;
  if (state.paused) {
    right = "paused";
    style = {.ink = Ink::kYellow, .bold = true};
  } else if (age >= kStale && state.facts.came != TimePoint{}) {
    right = fmt::format("no news for {}", ShortAge(age));
    style = {.ink = Ink::kRed};
  }
  Line line(size.columns);
  line.Add("muster top", kTitle);
  const std::string job = JobOf(view, state.facts.target);
  if (!job.empty()) line.Add("  ").Add(job, kTitle);
  if (!view.report.run_id.empty() && view.report.run_id != job) line.Add(fmt::format("  run {}", view.report.run_id));
  line.Add("  ");
  if (line.room() > right.size()) line.Cell("", line.room() - right.size());
  return std::move(line.Add(right, style));
}

Line ProgressLine(const StatusReport& report, size_t columns) {
  const LivePace pace = PaceOf(report);
  Line line(columns);
  std::vector<std::string> parts;
  if (pace.position) {
    const bool has_end = pace.end && std::isfinite(*pace.end) && *pace.end > 0;
    const char* unit = pace.in_epochs ? "epoch" : "step";
    if (has_end) {
      const double share = std::clamp(*pace.position / *pace.end, 0.0, 1.0);
      const size_t width = std::min(kWidestBar, columns / 4);
      const auto full = static_cast<size_t>(share * static_cast<double>(width));
      line.Add(Repeated("█", full), {.ink = Ink::kGreen}).Add(Repeated("░", width - full), kFaint);
      line.Add(fmt::format(" {:.0f}%  ", std::floor(share * 100)), kTitle);
      parts.push_back(fmt::format("{} {} of {}", unit, ShortPosition(*pace.position), ShortPosition(*pace.end)));
    } else {
      parts.push_back(fmt::format("{} {}", unit, ShortPosition(*pace.position)));
    }
    if (pace.left) parts.push_back(LongSpan(*pace.left) + " left");
    if (pace.loss) parts.push_back("loss " + ShortLoss(*pace.loss));
    if (pace.step_time) parts.push_back(fmt::format("{} a {}", ShortSpan(*pace.step_time), unit));
    if (pace.epoch && !pace.in_epochs) parts.push_back("epoch " + ShortPosition(*pace.epoch));
  }
  AddParts(parts, &line);
  return line;
}

// "goodput 93%: 4% restart, 2% start": the two uses that took most of the rest.
std::string GoodputText(const LiveTime& time) {
  if (!time.goodput) return "";
  double all = 0;
  std::array<double, kTimeUses> spent{};
  for (size_t use = 0; use < kTimeUses; ++use) {
    spent[use] = std::max(0.0, std::chrono::duration<double>(time.spent[use]).count());
    all += spent[use];
  }
  std::vector<std::pair<double, std::string_view>> losses;
  for (size_t use = 0; use < kTimeUses; ++use) {
    const auto name = static_cast<TimeUse>(use);
    if (name == TimeUse::kTraining || all <= 0 || spent[use] / all < kLeastLoss) continue;
    losses.emplace_back(spent[use] / all, TimeUseName(name));
  }
  std::sort(losses.begin(), losses.end(), std::greater<>());
  std::vector<std::string> parts;
  for (size_t at = 0; at < losses.size() && at < 2; ++at) {
    parts.push_back(fmt::format("{} {}", ShareText(losses[at].first), losses[at].second));
  }
  const std::string text = "goodput " + ShareText(*time.goodput);
  return parts.empty() ? text : fmt::format("{} ({})", text, Join(parts, ", "));
}

Line BudgetLine(const StatusReport& report, size_t columns) {
  std::vector<std::string> parts;
  if (std::string goodput = GoodputText(TimeOf(report)); !goodput.empty()) parts.push_back(std::move(goodput));
  parts.push_back(fmt::format("restarts {} of {}", report.restart_count, report.max_restarts));
  const auto nodes = std::count_if(report.nodes.begin(), report.nodes.end(),
                                   [](const rendezvous::StatusLine& node) { return node.rank.has_value(); });
  if (report.phase != "finished") {
    parts.push_back(report.min_nodes == report.max_nodes
                        ? fmt::format("{} of {}", nodes, Counted(report.max_nodes, "node"))
                        : fmt::format("{} ({} to {})", Counted(nodes, "node"), report.min_nodes, report.max_nodes));
  }
  Line line(columns);
  AddParts(parts, &line);
  return line;
}

Style CauseStyle(RoundCause cause) {
  switch (cause) {
    case RoundCause::kMembership:
      return {.ink = Ink::kBlue, .bold = true};
    case RoundCause::kPreemption:
      return {.ink = Ink::kYellow, .bold = true};
    case RoundCause::kFailure:
      return {.ink = Ink::kRed, .bold = true};
    case RoundCause::kSuccess:
      return {.ink = Ink::kCyan, .bold = true};
  }
  return {};
}

Ink WarningInk(LiveWarning::Kind kind) {
  switch (kind) {
    case LiveWarning::Kind::kFailure:
    case LiveWarning::Kind::kLost:
      return Ink::kRed;
    case LiveWarning::Kind::kSilent:
    case LiveWarning::Kind::kSlow:
      return Ink::kYellow;
    case LiveWarning::Kind::kOvercome:
      return Ink::kPlain;
  }
  return Ink::kYellow;
}

void AddWarnings(const std::vector<LiveWarning>& warnings, size_t room, size_t columns, std::vector<Line>* lines) {
  const size_t shown = std::min({warnings.size(), room, kMostWarnings});
  for (size_t at = 0; at < shown; ++at) {
    Line line(columns);
    line.Add("! " + warnings[at].text, {.ink = WarningInk(warnings[at].kind)});
    const bool last = at + 1 == shown && shown < warnings.size();
    if (last) line.Add(fmt::format(" (and {} more)", warnings.size() - shown), kFaint);
    lines->push_back(std::move(line));
  }
}

}  // namespace

Line RoundsLine(const StatusReport& report, size_t columns) {
  Line line(columns);
  if (report.rounds.empty() || columns < 24) return line;
  Duration whole{1};
  for (const RoundMark& round : report.rounds) whole = std::max(whole, round.began);
  const std::string legend =
      fmt::format(" {}, {}", Counted(static_cast<int64_t>(report.rounds.size()), "round"), LongSpan(whole));
  line.Add("rounds ", kFaint);
  const size_t width = line.room() - std::min(line.room(), legend.size());
  const auto cell_of = [&](Duration ago) {
    const double share =
        1 - static_cast<double>(std::clamp(ago, Duration{}, whole).count()) / static_cast<double>(whole.count());
    return std::min(static_cast<size_t>(share * static_cast<double>(width)), width - 1);
  };
  struct Cell {
    std::string_view glyph = "╌";
    Style style = kFaint;
  };
  if (width == 0) return line;
  std::vector<Cell> cells(width);
  for (const RoundMark& round : report.rounds) {
    const size_t last = round.stopping ? cell_of(*round.stopping) : width - 1;
    for (size_t at = cell_of(round.began); at <= last; ++at) cells[at] = {"━", {.ink = Ink::kGreen}};
  }
  for (const RoundMark& round : report.rounds) {  // after all bars, so that no bar covers a mark
    if (&round != &report.rounds.front()) cells[cell_of(round.began)] = {"┃", CauseStyle(round.cause)};
  }
  for (const Cell& cell : cells) line.Add(cell.glyph, cell.style);
  return std::move(line.Add(legend, kFaint));
}

std::vector<Line> HeadLines(const LiveView& view, const TopState& state, Size size, TimePoint now) {
  const size_t most = std::max<size_t>(size.rows / 2, 1);
  std::vector<Line> lines = {TitleLine(view, state, size, now)};
  const auto add = [&](Line line) {
    if (lines.size() < most && line.columns() > 0) lines.push_back(std::move(line));
  };
  if (!state.facts.trouble.empty()) add(std::move(Line(size.columns).Add(state.facts.trouble, {.ink = Ink::kYellow})));
  if (state.facts.came == TimePoint{}) return lines;  // no view has come
  add(std::move(Line(size.columns).Add(Sentence(view), {.ink = PhaseInk(view.report.phase), .bold = true})));
  if (view.source == "node" && !view.source_reason.empty()) {
    add(std::move(Line(size.columns).Add("this node alone: " + view.source_reason, {.ink = Ink::kYellow})));
  }
  add(ProgressLine(view.report, size.columns));
  add(BudgetLine(view.report, size.columns));
  const std::vector<LiveWarning> warnings = WarningsOf(view);
  const bool has_room = lines.size() + 1 + std::min<size_t>(warnings.size(), 1) <= most;
  if (has_room) add(RoundsLine(view.report, size.columns));
  AddWarnings(warnings, most - std::min(most, lines.size()), size.columns, &lines);
  return lines;
}

size_t TableHeight(const LiveView& view, const TopState& state, Size size, TimePoint now) {
  const size_t others = HeadLines(view, state, size, now).size() + 2 + (ShowsReason(size) ? 1 : 0);
  return size.rows > others ? size.rows - others : 1;
}

}  // namespace muster::agent
