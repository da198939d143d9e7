// SPDX-License-Identifier: Apache-2.0
#include "agent/progress/progress_pattern.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using testing::HasSubstr;

std::optional<ProgressLine> Read(const std::string& expression, std::string_view line) {
  const auto pattern = ProgressPattern::Compile(expression);
  EXPECT_TRUE(pattern.ok()) << pattern.status();
  return pattern.ok() ? (*pattern)->Read(line) : std::nullopt;
}

TEST(ProgressPatternTest, ReadsItsNamedGroups) {
  EXPECT_EQ(Read(R"(Runde (?P<epoch>\d+)\.(?P<step>\d+)/(?P<steps>\d+): Fehler (?P<loss>\S+))",
                 "x Runde 2.30/100: Fehler 1e-2"),
            (ProgressLine{.step = 30, .steps = 100, .epoch = 2, .loss = 0.01}));
  EXPECT_EQ(Read(R"((?P<step>\d+) of (?P<epochs>\d+)|loss (?P<loss>.*))", "loss 0.5"), (ProgressLine{.loss = 0.5}));
}

TEST(ProgressPatternTest, SkipsWhatDoesNotMatchOrIsNoCount) {
  EXPECT_EQ(Read(R"(at (?P<step>\d+))", "hello"), std::nullopt);
  EXPECT_EQ(Read(R"(at (?P<step>.*))", "at home"), std::nullopt);
  EXPECT_EQ(Read(R"(at (?P<step>.*))", "at -1"), std::nullopt);
  EXPECT_EQ(Read(R"(at (?P<step>.*)/(?P<steps>.*))", "at 1.0/0"), (ProgressLine{.step = 1}));
  EXPECT_EQ(Read(R"(at (?P<step>\d+))", "at 99999999999999999999999"), std::nullopt);
}

TEST(ProgressPatternTest, RefusesWhatCannotTellAnything) {
  struct {
    const char* expression;
    const char* why;
  } const rows[] = {
      {"(", "missing )"},
      {R"(step (\d+))", "want a named group"},
      {R"((?P<steps>\d+))", "want a named group"},
      {R"((?P<stpe>\d+))", "the group \"stpe\" has no meaning"},
      {R"(((?P<step>\d{1,1000}){1000}){1000})", "invalid repetition size"},
  };
  for (const auto& row : rows) {
    const auto pattern = ProgressPattern::Compile(row.expression);
    ASSERT_TRUE(absl::IsInvalidArgument(pattern.status())) << row.expression;
    EXPECT_THAT(std::string(Message(pattern.status())), HasSubstr(row.why));
  }
}

}  // namespace
}  // namespace muster::agent
