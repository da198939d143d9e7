// SPDX-License-Identifier: Apache-2.0
// The messages between the agent and a worker's Python, byte by byte.
#include "agent/standby/frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/standby/start_archive.h"

namespace muster::agent::standby {
namespace {

using std::string_literals::operator""s;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(StandbyFrames, HaveALetterALengthAndABody) {
  EXPECT_EQ(Encode(Letter::kPing), "P\0\0\0\0"s);
  EXPECT_EQ(Encode(Letter::kStart, std::string(300, 'x')), "S\x2c\x01\0\0"s + std::string(300, 'x'));
}

TEST(StandbyFrames, ListsAreSeparatedByNul) {
  EXPECT_EQ(JoinParts({"a", "", "b.c"}), "a\0\0b.c"s);
  EXPECT_THAT(SplitParts("a\0b.c"s), ElementsAre("a", "b.c"));
  EXPECT_THAT(SplitParts(""), IsEmpty());
}

TEST(StandbyFrames, ArePutTogetherFromAnyPieces) {
  const std::string bytes = "H\0\0\0\0N\3\0\0\0a\0bR\1\0\0\0007"s;
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      reader.Add(std::string_view(bytes).substr(at, piece));
      for (auto next = reader.Next(); next.ok() && *next; next = reader.Next()) frames.push_back(**next);
    }
    EXPECT_THAT(frames,
                ElementsAre(Frame{Letter::kHello, ""}, Frame{Letter::kNames, "a\0b"s}, Frame{Letter::kReady, "7"}))
        << piece;
  }
}

TEST(StandbyFrames, RefuseLettersOfTheAgentAndOthers) {
  for (const char* bytes : {"S", "I", "x", "\xff"}) {
    FrameReader reader;
    reader.Add(bytes);
    EXPECT_THAT(Message(reader.Next().status()), HasSubstr("begins with byte")) << bytes;
  }
}

TEST(StandbyFrames, RefuseALengthBeforeTheBytesAreThere) {
  FrameReader reader;
  reader.Add("N\1\0\x10\0"s);
  EXPECT_THAT(Message(reader.Next().status()), HasSubstr("1048577 bytes, at most 1048576"));
}

// As `python3 -m zipfile` writes it, but for times: the local header, the directory and its end.
TEST(StartArchive, IsAZipOfOneStoredFile) {
  const std::string zip = ZipOf({{"a.py", "pass\n"}});
  const std::string facts = "\x14\0\0\0\0\0\0\0\x21\0\x96\x92\x1a\x0e\5\0\0\0\5\0\0\0\4\0\0\0"s;
  EXPECT_EQ(zip, "PK\3\4"s + facts + "a.pypass\n" + "PK\1\2\x14\0"s + facts + std::string(14, '\0') + "a.py" +
                     "PK\5\6\0\0\0\0\1\0\1\0\x32\0\0\0\x27\0\0\0\0\0"s);
}

}  // namespace
}  // namespace muster::agent::standby
