// SPDX-License-Identifier: Apache-2.0
#include "agent/page/live_page.h"

#include <algorithm>
#include <cmath>

#include "agent/page/frame.h"
#include "agent/page/live_sections.h"
#include "agent/page/widgets.h"
#include "agent/report/report_text.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster::agent {
namespace {

constexpr size_t kLongestSentence = 400;
constexpr size_t kLongestName = 80;  // in the title: a tab has less room

// Where the elements are, and how their tags look. The table's section comes between the others.
struct Place {
  std::string_view id, tag, attributes;
};
constexpr Place kHead[] = {{"job", "p", "class=\"kicker\""},
                           {"sentence", "span", "aria-live=\"polite\""},
                           {"since", "span", ""},
                           {"warnings", "div", ""},
                           {"figures", "div", ""}};
constexpr Place kPanels[] = {
    {"rounds", "section", "class=\"panel\""},      {"curve", "section", "class=\"panel half\""},
    {"time", "section", "class=\"panel half\""},   {"heat", "section", "class=\"panel half\""},
    {"closer", "section", "class=\"panel half\""}, {"about", "section", "class=\"panel\""}};

std::string Element(const Place& place, std::string_view content) {
  return fmt::format("<{0} id=\"{1}\" {2}>{3}</{0}>", place.tag, place.id, place.attributes, content);
}

std::string_view ContentOf(const LiveContent& content, std::string_view id) {
  for (const LiveContent::Section& section : content.sections) {
    if (section.id == id) return section.html;
  }
  return "";
}

// What changes comes first, since a tab shows the beginning.
std::string TitleOf(std::string_view state, std::string_view name) { return fmt::format("{} - {}", state, name); }

// "Training 42 %". The first word is that of the sentence.
std::string StateOf(const LiveFacts& facts) {
  const LivePace& pace = facts.pace;
  std::string state = facts.sentence.substr(0, facts.sentence.find_first_of(": "));
  if (!pace.position || facts.view.report.phase != "running") return state;
  if (pace.end && *pace.end > 0) {
    return fmt::format("{} {:.0f} %", state, std::floor(100 * std::clamp(*pace.position / *pace.end, 0.0, 1.0)));
  }
  return fmt::format("{}, {} {}", state, pace.in_epochs ? "epoch" : "step",
                     FormatPosition(*pace.position, pace.in_epochs));
}

std::string NodesContent(const RankTable& table) { return PanelContent("Nodes and ranks", RankTableHtml(table)); }

std::string Event(std::string_view name, std::string_view json) {
  return fmt::format("event: {}\ndata: {}\n\n", name, json);
}

std::string TitleEvent(std::string_view title) { return Event("title", JsonString(ShownText(title))); }

std::string SectionEvent(std::string_view id, std::string_view html) {
  return Event("section", fmt::format("{{\"id\":{},\"html\":{}}}", JsonString(id), JsonString(html)));
}

}  // namespace

LiveContent MakeLiveContent(const LiveFacts& facts, const LiveOptions& options) {
  const LiveView& view = facts.view;
  const std::string sentence = Abbreviated(facts.sentence, kLongestSentence);
  const std::string_view steady = Steady(sentence);
  LiveContent content;
  content.name = Abbreviated(view.job.empty() ? view.report.run_id : view.job, kLongestName);
  content.title = TitleOf(StateOf(facts), content.name);
  content.sections = {
      {"job", fmt::format("{}{} <code>{}</code>", view.job.empty() ? "" : EscapeHtml(view.job) + ", ",
                          view.job.empty() ? "Run" : "run", EscapeHtml(view.report.run_id))},
      {"sentence", EscapeHtml(steady)},
      {"since", EscapeHtml(std::string_view(sentence).substr(steady.size()))},
      {"warnings", HeadSection(facts)},
      {"figures", FiguresSection(facts)},
      {"rounds", RoundsSection(facts)},
      {"curve", CurveSection(facts)},
      {"time", TimeSection(facts)},
      {"heat", HeatSection(facts)},
      {"closer", LookCloserSection(facts, options)},
      {"about", AboutSection(facts, options)},
  };
  content.table = MakeRankTable(view.report, facts.pace.slow ? facts.pace.slow->rank : -1);
  return content;
}

std::string LivePage(const LiveContent& content) {
  const auto element = [&](const Place& place) { return Element(place, ContentOf(content, place.id)); };
  Frame frame{
      .title = content.title, .status = "<p id=\"news\"><noscript>Asks again every 5 s</noscript></p>", .live = true};
  frame.main = fmt::format("{}<h1>{}{}</h1>\n{}{}<div class=\"panels\">\n", element(kHead[0]), element(kHead[1]),
                           element(kHead[2]), element(kHead[3]), element(kHead[4]));
  for (const Place& place : kPanels) {
    if (place.id == std::string_view("about")) {
      frame.main += fmt::format("<section id=\"nodes\" class=\"panel\">{}</section>\n", NodesContent(content.table));
    }
    frame.main += element(place) + "\n";
  }
  frame.main += "</div>\n";
  frame.footer =
      "<p>Heard: the time since the last sign of the node, and since the last output of the rank. Sums of a node: CPUs "
      "and memory; its position is that of the rank that is behind, its step the slowest.</p>";
  return FramedPage(frame);
}

LiveRequest ParseLiveRequest(std::string_view query) {
  LiveRequest request;
  for (const std::string_view part : Split(query, '&')) {
    const std::string_view value = part.substr(std::min(part.size(), part.find('=')) + (part.find('=') < part.size()));
    if (part.starts_with("outline=")) request.outline = value;
    if (!part.starts_with("open=")) continue;
    request.all_open = value == "all";
    for (const std::string_view group : Split(value, ',')) request.open.emplace(group);
  }
  return request;
}

std::string LiveEvents(const LiveContent* before, const LiveContent& now, const LiveRequest& request) {
  std::string events;
  if (before == nullptr || before->title != now.title) events += TitleEvent(now.title);
  for (size_t at = 0; at < now.sections.size(); ++at) {
    if (before != nullptr && before->sections[at] == now.sections[at]) continue;
    events += SectionEvent(now.sections[at].id, now.sections[at].html);
  }
  const std::string& outline = before == nullptr ? request.outline : before->table.outline;
  if (outline != now.table.outline) {
    events += SectionEvent("nodes", NodesContent(now.table));
  } else {
    const auto shown = [&](const std::string& group) { return request.all_open || request.open.contains(group); };
    const std::string cells = ChangedCells(before == nullptr ? nullptr : &before->table, now.table, shown);
    if (!cells.empty()) events += Event("cells", cells);
  }
  return events + Event("tick", "1");
}

std::string MovedEvent(std::string_view sentence) { return Event("moved", JsonString(ShownText(sentence))); }

std::string EndedEvent(std::string_view sentence, const LiveContent* content) {
  return (content == nullptr ? "" : TitleEvent(TitleOf("Ended", content->name))) +
         Event("ended", JsonString(ShownText(sentence)));
}

}  // namespace muster::agent
