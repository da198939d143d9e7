// SPDX-License-Identifier: Apache-2.0
#include "agent/page/widgets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/page/file_link.h"
#include "agent/page/frame.h"
#include "agent/page/heat_map.h"
#include "agent/page/loss_curve.h"
#include "agent/page/page_files.h"
#include "agent/page/time_bar.h"
#include "agent/page/timeline_plot.h"
#include "base/text.h"
#include "tests/agent/page/markup.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

TEST(Widgets, TilesAndFactsAndCommandsAreText) {
  const Tile tiles[] = {{kEvilText, kEvilText, kEvilText, 0.5}};
  const Fact facts[] = {{kEvilText, kEvilText}, {"empty", ""}};
  const Command commands[] = {{kEvilText, kEvilText}};
  const PageWarning warnings[] = {{kEvilText, true}, {kEvilText, false}};
  const std::string paths[] = {kEvilText, "b", "c"};
  for (const std::string& html :
       {Tiles(tiles), Facts(facts), Commands(commands), Warnings(warnings), PathList(paths, 1, "node")}) {
    ExpectNoMarkupOf(html);
  }
  EXPECT_THAT(Facts(facts), Not(HasSubstr("empty")));
  EXPECT_THAT(Tiles(tiles), HasSubstr("width=\"50.0%\""));
  EXPECT_THAT(PathList(paths, 1, "node"), HasSubstr("and of 2 nodes"));
  EXPECT_EQ(Warnings({}), "");
  EXPECT_EQ(Panel("Title", ""), "");
}

TEST(Widgets, WordsForAShell) {
  const struct {
    std::string_view word, quoted;
  } rows[] = {{"/logs/a-b_1", "/logs/a-b_1"}, {"", "''"}, {"a b", "'a b'"}, {"a'b", "'a'\\''b'"}, {"$(x)", "'$(x)'"}};
  for (const auto& row : rows) EXPECT_EQ(ShellWord(row.word), row.quoted);
}

TEST(FileLink, OnlyWhatIsBelowThePageIsALink) {
  const struct {
    std::string_view path, place, url;
  } rows[] = {{"logs/a/0", "logs", "./a/0"},
              {"logs/a/0", "logs/", "./a/0"},
              {"/l/a b/0", "/l", "./a%20b/0"},
              {"/l/a/0", "/", "./l/a/0"},
              {"logs/a", ".", "./logs/a"},
              {"logs/javascript:alert(1)", "logs", "./javascript%3Aalert%281%29"},
              {"logs2/a", "logs", ""},
              {"../a", ".", ""},
              {"/a", ".", ""},
              {"logs", "logs", ""},
              {"logs/a", "", ""}};
  for (const auto& row : rows) {
    const std::string link = PathLink(row.path, row.place);
    if (row.url.empty()) {
      EXPECT_THAT(link, Not(HasSubstr("href"))) << row.path;
    } else {
      EXPECT_THAT(link, HasSubstr(fmt::format("href=\"{}\"", row.url))) << row.path;
    }
  }
  EXPECT_EQ(FolderOfFile("a/b.html"), "a");
  EXPECT_EQ(FolderOfFile("/b.html"), "/");
  EXPECT_EQ(FolderOfFile("b.html"), ".");
}

TEST(Frame, HasNoScriptButTheLivePagesOwn) {
  const Frame report{.title = kEvilText, .main = "<h1>x</h1>"};
  EXPECT_EQ(CountOf(FramedPage(report), "<script"), 0u);
  EXPECT_THAT(FramedPage(report), Not(HasSubstr("script-src")));
  const Frame live{.title = "x", .main = "<h1>x</h1>", .live = true};
  const std::string page = FramedPage(live);
  EXPECT_EQ(CountOf(page, "<script>"), 1u);
  EXPECT_THAT(page, HasSubstr("<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>"));
  EXPECT_THAT(page, HasSubstr("script-src 'sha256-"));
  EXPECT_LE(kLiveScript.size(), 4096u);  // short enough to be read
  EXPECT_LE(page.find("Content-Security-Policy"), page.find("<style>"));
}

TEST(LossCurve, AFewPoints) {
  EXPECT_EQ(LossCurve({}, false), "");
  const CurveLine one{"attempt 0", {{1, 2}}};
  EXPECT_EQ(LossCurve({&one, 1}, false), "");
  const CurveLine lines[] = {{kEvilText, {{0, 3}, {10, 1}}}, {"attempt 1", {{8, 1.5}, {9, 0.5}, {20, 0.7}}}};
  const std::string html = LossCurve(lines, false);
  ExpectNoMarkupOf(html);
  EXPECT_THAT(html, HasSubstr("First 1.5 at step 8, lowest 0.5 at step 9, last 0.7 at step 20."));
  EXPECT_EQ(CountOf(html, "<path class=\"before\""), 1u);
  EXPECT_EQ(CountOf(html, "<tr><td"), 3u);
}

TEST(LossCurve, AnyNumbers) {
  for (const double loss : {0.0, -1.0, 1e300, -1e300, 1e-300}) {
    const CurveLine same{"", {{0, loss}, {0, loss}}}, apart{"", {{0, loss}, {1e16, 1}}};
    for (const CurveLine& line : {same, apart}) {
      const std::string html = LossCurve({&line, 1}, true);
      EXPECT_THAT(html, Not(HasSubstr("nan"))) << loss;
      EXPECT_THAT(html, Not(HasSubstr("inf"))) << loss;
    }
  }
}

TEST(TimeBar, SharesOfTheTime) {
  EXPECT_EQ(TimeBar({}), "");
  const TimeSpent spent = {seconds(10), seconds(0), seconds(75), seconds(15), seconds(0), seconds(0)};
  const std::string html = TimeBar(spent);
  EXPECT_THAT(html, HasSubstr("aria-label=\"75.0 % of the time went into training"));
  EXPECT_EQ(CountOf(html, "<rect"), 3u);
  EXPECT_THAT(html, HasSubstr("<rect class=\"redone\" x=\"75.00%\" width=\"15.00%\""));
  EXPECT_EQ(GoodputOf(spent), 0.75);
}

HeatMap Map(int ranks, int slots) {
  HeatMap map{.cells = {}, .slots = slots, .slow = std::nullopt, .evidence = ""};
  for (int rank = 0; rank < ranks; ++rank) map.cells.push_back({rank, "node", 0.3});
  return map;
}

TEST(HeatMap, OneStrokeForEqualNeighbours) {
  HeatMap map = Map(1024, 8);
  std::string html = HeatMapHtml(map);
  EXPECT_LT(html.size(), 8'000u);
  EXPECT_THAT(html, HasSubstr("No rank stands out."));
  EXPECT_THAT(html, HasSubstr("viewBox=\"0 0 64 16\""));
  map.cells[70].seconds = 0.6;
  map.slow = 70;
  map.evidence = kEvilText;
  html = HeatMapHtml(map);
  ExpectNoMarkupOf(html);
  EXPECT_THAT(html, HasSubstr("<path class=\"h4\" d=\"M6 1.5h1\"/>"));
  EXPECT_THAT(html, HasSubstr("class=\"mark\" d=\"M6 1h1v1h-1z\""));
  EXPECT_THAT(html, HasSubstr("the slowest 600 ms (rank 70)"));
  for (size_t at = 0; at < map.cells.size(); at += 2) map.cells[at].seconds = 0.9;
  EXPECT_LT(HeatMapHtml(map).size(), 30'000u);  // no two neighbours are alike
}

TEST(HeatMap, BoundsAndGaps) {
  EXPECT_EQ(HeatMapHtml({}), "");
  HeatMap map = Map(10'000, 8);
  EXPECT_THAT(HeatMapHtml(map), HasSubstr("5904 ranks left out."));
  for (HeatCell& cell : map.cells) cell.seconds.reset();
  EXPECT_EQ(HeatMapHtml(map), "");
  map.cells[1].seconds = 0.1;
  EXPECT_THAT(HeatMapHtml(map), HasSubstr("class=\"none\""));
  EXPECT_THAT(HeatMapHtml(Map(3, 100)), HasSubstr("viewBox=\"0 0 3 1\""));
}

TEST(TimelinePlot, ACrossIsNoColour) {
  TimelinePlot plot{
      .name = kEvilText, .description = kEvilText, .from = 0, .to = 1000, .rows = {}, .crossed = kEvilText};
  plot.rows.push_back(
      {kEvilText, true, {{0, 500, BarKind::kRetryable, true, kEvilText}, {500, 500, BarKind::kLost, false, ""}}});
  const std::string html = TimelineHtml(plot);
  ExpectNoMarkupOf(html);
  EXPECT_THAT(html, HasSubstr("class=\"cross retry\" x=\"50.000%\""));
  EXPECT_THAT(html, Not(HasSubstr("job: time lost")));  // nothing was lost
}

}  // namespace
}  // namespace muster::agent
