// SPDX-License-Identifier: Apache-2.0
#include "local/drills.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace muster::local {
namespace {

using testing::HasSubstr;

using Action = decltype(Drill::action);

TEST(Drills, EachFormIsRead) {
  struct Row {
    const char* text;
    Drill::Target target;
    int number;
    Action action;
    std::optional<Duration> after;
    const char* line;
  };
  using std::chrono::milliseconds;
  const Row rows[] = {
      {"node:1@30s", Drill::Target::kNode, 1, Drill::Signal{SIGKILL}, milliseconds(30'000), ""},
      {"node:0@0ms", Drill::Target::kNode, 0, Drill::Signal{SIGKILL}, milliseconds(0), ""},
      {"rank:3@2m", Drill::Target::kRank, 3, Drill::Signal{SIGKILL}, milliseconds(120'000), ""},
      {"rank:3@epoch 4", Drill::Target::kRank, 3, Drill::Signal{SIGKILL}, std::nullopt, "epoch 4"},
      {"rank:3@a@b: c", Drill::Target::kRank, 3, Drill::Signal{SIGKILL}, std::nullopt, "a@b: c"},
      {"rank:3@30", Drill::Target::kRank, 3, Drill::Signal{SIGKILL}, std::nullopt, "30"},
      {"rank:3@s", Drill::Target::kRank, 3, Drill::Signal{SIGKILL}, std::nullopt, "s"},
      {"rank:0:STOP@5s", Drill::Target::kRank, 0, Drill::Signal{SIGSTOP}, milliseconds(5000), ""},
      {"rank:2:exit=3@5s", Drill::Target::kRank, 2, Drill::Exit{3}, milliseconds(5000), ""},
      {"node:0:exit=0@x", Drill::Target::kNode, 0, Drill::Exit{0}, std::nullopt, "x"},
      {"node:0:exit=255@x", Drill::Target::kNode, 0, Drill::Exit{255}, std::nullopt, "x"},
      {"node:1:cut@1s", Drill::Target::kNode, 1, Drill::Link::kCut, milliseconds(1000), ""},
      {"node:1:mend@x", Drill::Target::kNode, 1, Drill::Link::kMend, std::nullopt, "x"},
      {"node:0:15@x", Drill::Target::kNode, 0, Drill::Signal{SIGTERM}, std::nullopt, "x"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const auto drill = ParseDrill(row.text);
    ASSERT_TRUE(drill.ok()) << Message(drill.status());
    EXPECT_EQ(drill->target, row.target);
    EXPECT_EQ(drill->number, row.number);
    EXPECT_EQ(drill->action, row.action);
    EXPECT_EQ(drill->after, row.after);
    EXPECT_EQ(drill->text, row.line);
    EXPECT_EQ(drill->said, row.text);
  }
}

TEST(Drills, AWrongFormIsNamed) {
  struct Row {
    const char *text, *message;
  };
  const Row rows[] = {
      {"", "--kill '': it does not say when"},
      {"node:1", "it does not say when"},
      {"node:1@", "it does not say when"},
      {"node@1s", "the part before @ is not TARGET:NUMBER[:ACTION]"},
      {"rank:1:cut@1s", "only a node can be cut or mended: want node:1:cut"},
      {"node:1:KILL:2@1s", "the part before @ is not TARGET:NUMBER[:ACTION]"},
      {"pod:1@1s", "'pod' is neither node nor rank"},
      {"node:-1@1s", "'-1' is not a number"},
      {"node:x@1s", "'x' is not a number"},
      {"node:1:WHAT@1s", "WHAT"},
      {"node:1:exit=@1s", "'exit=' is not an exit code: want exit=0 to exit=255"},
      {"node:1:exit=256@1s", "'exit=256' is not an exit code"},
      {"node:1:exit=-1@1s", "'exit=-1' is not an exit code"},
  };
  for (const Row& row : rows) EXPECT_THAT(std::string(Message(ParseDrill(row.text).status())), HasSubstr(row.message));
}

TEST(Drills, OnlyALinkOfItsOwnCanBeCut) {
  EXPECT_TRUE(CheckLinks(*ParseDrill("node:1:cut@1s"), "").ok());
  EXPECT_TRUE(CheckLinks(*ParseDrill("node:1@1s"), "--network shared").ok());
  EXPECT_EQ(Message(CheckLinks(*ParseDrill("node:1:mend@x"), "it needs root")),
            "--kill 'node:1:mend@x': all hosts share this machine's network, so none has a link to cut: it needs root");
}

}  // namespace
}  // namespace muster::local
