// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/watch_lines.h"

#include <gmock/gmock.h>

#include <vector>

namespace muster::controller {
namespace {

using testing::ElementsAre;

constexpr size_t kLongest = 20;

// The lines of `pieces`, with one Take for each piece; "..." after those that are longer than kLongest.
std::vector<std::string> LinesOf(const std::vector<std::string_view>& pieces) {
  WatchLines lines(kLongest);
  std::vector<std::string> got;
  for (std::string_view piece : pieces) {
    lines.Take(piece, [&](std::string_view line, bool whole) {
      got.push_back(std::string(line) + (whole ? "" : "..."));
      return true;
    });
  }
  return got;
}

TEST(WatchLines, ACutAtAnyByteChangesNothing) {
  constexpr std::string_view kBody = "{\"a\":1}\n\n{\"b\":\"x\"}\r\n{\"c\":[]}\n{\"half";
  for (size_t first = 0; first <= kBody.size(); ++first) {
    for (size_t second = first; second <= kBody.size(); ++second) {
      EXPECT_THAT(LinesOf({kBody.substr(0, first), kBody.substr(first, second - first), kBody.substr(second)}),
                  ElementsAre("{\"a\":1}", "{\"b\":\"x\"}", "{\"c\":[]}"))
          << first << " " << second;
    }
  }
}

TEST(WatchLines, EachByteByItself) {
  std::vector<std::string_view> pieces;
  constexpr std::string_view kBody = "one\ntwo\n";
  for (size_t at = 0; at < kBody.size(); ++at) pieces.push_back(kBody.substr(at, 1));
  EXPECT_THAT(LinesOf(pieces), ElementsAre("one", "two"));
}

TEST(WatchLines, ALineHasABound) {
  const std::string just(kLongest, 'x'), more(kLongest + 1, 'x');
  EXPECT_THAT(LinesOf({just + "\n"}), ElementsAre(just));
  EXPECT_THAT(LinesOf({just, "\n" + just, "\n"}), ElementsAre(just, just));
  EXPECT_THAT(LinesOf({"a\n" + more}), ElementsAre("a"));
  EXPECT_THAT(LinesOf({"a\n" + more + "\nb\n"}), ElementsAre("a", just + "...", "b"));
  EXPECT_THAT(LinesOf({just, "y\nb\n"}), ElementsAre(just + "...", "b"));
  EXPECT_THAT(LinesOf({just, "y", more, "\n", "b\n"}), ElementsAre(just + "...", "b"));
}

TEST(WatchLines, StopsWhereNoMoreIsWanted) {
  WatchLines lines(kLongest);
  int got = 0;
  lines.Take("a\nb\nc\n", [&](std::string_view, bool) { return ++got < 2; });
  EXPECT_EQ(got, 2);
}

}  // namespace
}  // namespace muster::controller
