// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/watch_frames.h"

#include <gmock/gmock.h>

#include <vector>

#include "tests/controller/kube/protobuf_writer.h"

namespace muster::controller {
namespace {

using protobuf::Frame;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t kLongest = 20;

// The frames of `pieces`, with one Take for each piece; "..." after those that are longer than kLongest.
std::vector<std::string> FramesOf(const std::vector<std::string_view>& pieces) {
  WatchFrames frames(kLongest);
  std::vector<std::string> got;
  for (std::string_view piece : pieces) {
    frames.Take(piece, [&](std::string_view frame, bool whole) {
      got.push_back(std::string(frame) + (whole ? "" : "..."));
      return true;
    });
  }
  return got;
}

TEST(WatchFrames, ACutAtAnyByteChangesNothing) {
  const std::string body = Frame("one") + Frame("") + Frame("two, longer") + Frame("half").substr(0, 6);
  const std::string_view all = body;
  for (size_t first = 0; first <= all.size(); ++first) {
    for (size_t second = first; second <= all.size(); ++second) {
      EXPECT_THAT(FramesOf({all.substr(0, first), all.substr(first, second - first), all.substr(second)}),
                  ElementsAre("one", "two, longer"))
          << first << " " << second;
    }
  }
}

TEST(WatchFrames, AFrameHasABound) {
  const std::string just(kLongest, 'x'), more(kLongest + 1, 'x');
  EXPECT_THAT(FramesOf({Frame(just)}), ElementsAre(just));
  EXPECT_THAT(FramesOf({Frame("a") + Frame(more) + Frame("b")}), ElementsAre("a", just + "...", "b"));
  const std::string parts = Frame(more + more) + Frame("b");
  std::vector<std::string_view> bytes;
  for (size_t at = 0; at < parts.size(); ++at) bytes.push_back(std::string_view(parts).substr(at, 1));
  EXPECT_THAT(FramesOf(bytes), ElementsAre(just + "...", "b"));
}

TEST(WatchFrames, AFrameThatNobodySendsComesAtOnce) {
  EXPECT_THAT(FramesOf({std::string_view("\xff\xff\xff\xff", 4), "a"}), ElementsAre("..."));
  EXPECT_THAT(FramesOf({std::string_view("\x10\0\0\0", 4), "a"}), ElementsAre("..."));
  EXPECT_THAT(FramesOf({std::string_view("\x0f\xff\xff\xff", 4), "a"}), IsEmpty());
}

TEST(WatchFrames, StopsWhereNoMoreIsWanted) {
  WatchFrames frames(kLongest);
  int got = 0;
  frames.Take(Frame("a") + Frame("b") + Frame("c"), [&](std::string_view, bool) { return ++got < 2; });
  EXPECT_EQ(got, 2);
}

}  // namespace
}  // namespace muster::controller
