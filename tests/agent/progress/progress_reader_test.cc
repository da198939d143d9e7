// SPDX-License-Identifier: Apache-2.0
#include "agent/progress/progress_reader.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Stream = ProgressReader::Stream;

TEST(ProgressReaderTest, LinesComeInAnyPieces) {
  const std::string text = "hello\nstep 1/9 loss 3\r\nEpo\nstep 2/9 loss 2\rstep 3/9 loss 1\r";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    ProgressReader reader;
    for (size_t at = 0; at < text.size(); at += piece)
      reader.Add(Stream::kOut, text.substr(at, piece), TimePoint(seconds(at)));
    const RankProgress& progress = reader.At(TimePoint(seconds(1000)));
    EXPECT_EQ(progress.position(), 3) << piece;
    EXPECT_EQ(progress.curve().size(), 3u) << piece;
  }
}

TEST(ProgressReaderTest, TheStreamsDoNotMix) {
  ProgressReader reader;
  reader.Add(Stream::kOut, "step 4 of", TimePoint(seconds(1)));
  reader.Add(Stream::kErr, "epoch 7 loss 2\n", TimePoint(seconds(2)));
  reader.Add(Stream::kOut, " the loss 5\n", TimePoint(seconds(3)));
  const RankProgress& progress = reader.At(TimePoint(seconds(4)));
  EXPECT_EQ(progress.last().epoch, 7);
  EXPECT_EQ(progress.last().step, 4);
  EXPECT_EQ(progress.last().loss, 5);
}

TEST(ProgressReaderTest, OfManyLinesTheNewestIsKnown) {
  ProgressReader reader;
  std::string lines;
  for (int step = 1; step <= 10'000; ++step) lines += fmt::format("step {} loss 1\n", step);
  reader.Add(Stream::kOut, lines, TimePoint(seconds(1)));
  EXPECT_EQ(reader.At(TimePoint(seconds(1))).position(), ProgressReader::kMostLines);
  EXPECT_EQ(reader.At(TimePoint(seconds(1) + ProgressReader::kWindow)).position(), 10'000);
  EXPECT_EQ(reader.At(TimePoint(seconds(1000))).last_came(), TimePoint(seconds(1)));
}

// What comes beyond kMostBytes in a window is passed over, but for the last bytes of each stream.
TEST(ProgressReaderTest, OfManyBytesTheLastAreRead) {
  for (const char* end : {"\n", "\r"}) {
    for (const size_t piece : {size_t{50}, size_t{1000}, size_t{4096}, size_t{65'536}, size_t{1} << 20}) {
      ProgressReader reader;
      std::string text = std::string("step 1 loss 1") + end;
      for (int step = 2; step <= 10'000; ++step) text += fmt::format("note {} of what goes on{}", step, end);
      text += fmt::format("step 2 loss 1{}a line th", end);
      for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(std::min(rest.size(), piece))) {
        reader.Add(Stream::kOut, rest.substr(0, piece), TimePoint(seconds(1)));
      }
      reader.Add(Stream::kErr, "step 7 loss 7", TimePoint(seconds(1)));
      EXPECT_EQ(reader.At(TimePoint(seconds(1))).position(), 1);
      EXPECT_EQ(reader.At(TimePoint(seconds(2))).position(), 2) << piece;
      reader.Add(Stream::kErr, "0" + std::string(end), TimePoint(seconds(2)));
      reader.Add(Stream::kOut, "at ended\nstep 71 loss 7\n", TimePoint(seconds(2)));
      EXPECT_EQ(reader.At(TimePoint(seconds(2))).position(), 71);
      EXPECT_EQ(reader.At(TimePoint(seconds(2))).curve().size(), 4u);
    }
  }
}

// The end of a line whose beginning was passed over is no line.
TEST(ProgressReaderTest, AHalfLineIsNotRead) {
  ProgressReader reader;
  reader.Add(Stream::kOut, std::string(1 << 20, 'x') + " step 5 loss 1", TimePoint(seconds(1)));
  reader.Add(Stream::kOut, " step 6 loss 1", TimePoint(seconds(2)));
  reader.Add(Stream::kOut, "\n", TimePoint(seconds(3)));
  EXPECT_EQ(reader.At(TimePoint(seconds(4))).position(), std::nullopt);
  reader.Add(Stream::kOut, "step 7 loss 1\n", TimePoint(seconds(5)));
  EXPECT_EQ(reader.At(TimePoint(seconds(6))).position(), 7);
}

TEST(ProgressReaderTest, APatternCountsBesidesTheKnownForms) {
  ProgressReader reader(*ProgressPattern::Compile(R"(^turn (?P<step>\d+))"));
  reader.Add(Stream::kOut, "turn 3\n", TimePoint(seconds(1)));
  EXPECT_EQ(reader.At(TimePoint(seconds(1))).position(), 3);
  reader.Add(Stream::kOut, "turns\nstep 5 loss 2\n", TimePoint(seconds(2)));
  EXPECT_EQ(reader.At(TimePoint(seconds(2))).position(), 5);
}

TEST(ProgressReaderTest, ALongLineCountsWithItsBeginning) {
  ProgressReader reader;
  reader.Add(Stream::kErr, "step 1 loss 2 ", TimePoint(seconds(1)));
  for (int i = 0; i < 1000; ++i) reader.Add(Stream::kErr, std::string(10'000, 'x'), TimePoint(seconds(1)));
  reader.Add(Stream::kErr, "\nstep 2 loss 2" + std::string(1 << 20, 'x') + "\n", TimePoint(seconds(2)));
  EXPECT_EQ(reader.At(TimePoint(seconds(3))).position(), 2);
  EXPECT_EQ(reader.At(TimePoint(seconds(3))).curve().size(), 2u);
}

}  // namespace
}  // namespace muster::agent
