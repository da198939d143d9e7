// SPDX-License-Identifier: Apache-2.0
#include "agent/node_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/fake_machine.h"

namespace muster::agent {
namespace {

using testing::ElementsAre;

// The rounds of a node: o is an own failure, c a consequence of a peer's failure, - no failure here.
TEST(OwnFailures, TheSecondInARowIsChecked) {
  struct Row {
    std::string rounds;
    std::string checked;  // x: the node is checked after this round
  };
  const Row rows[] = {
      {"o", "."},       {"oo", ".x"},   {"ooo", ".x."},   {"oooo", ".x.x"}, {"o-o", "..."},
      {"o-oo", "...x"}, {"oco", "..x"}, {"cccc", "...."}, {"coc", "..."},   {"-", "."},
  };
  for (const Row& row : rows) {
    OwnFailures failures;
    std::string checked;
    for (char round : row.rounds) {
      failures.RoundBegins();
      WorkerFailure failure;
      failure.consequence = round == 'c';
      if (round != '-') failures.Failed({failure});
      checked += failures.RoundEnds() ? 'x' : '.';
    }
    EXPECT_EQ(checked, row.checked) << row.rounds;
  }
}

TEST(OwnFailures, OneOfItsOwnIsEnough) {
  OwnFailures failures;
  WorkerFailure own, consequence;
  consequence.consequence = true;
  for (bool checked : {false, true}) {
    failures.RoundBegins();
    failures.Failed({consequence, own});
    EXPECT_EQ(failures.RoundEnds(), checked);
  }
}

TEST(NodeCheckCommand, ByShellByWordsOrBuiltin) {
  FakeMachine with_shell, scratch;
  with_shell.Program("/bin/sh");
  EXPECT_THAT(NodeCheckCommand("a 'b c' | d", {}, "", with_shell.fs()), ElementsAre("/bin/sh", "-c", "a 'b c' | d"));
  EXPECT_THAT(NodeCheckCommand("/muster check  --json", {}, "", scratch.fs()),
              ElementsAre("/muster", "check", "--json"));
  EXPECT_THAT(NodeCheckCommand("builtin", {}, "", with_shell.fs()), ElementsAre("/proc/self/exe", "check", "--json"));
  EXPECT_THAT(NodeCheckCommand("builtin --disk=/x", {"a:1", "[::1]:2"}, "/logs", with_shell.fs()),
              ElementsAre("/proc/self/exe", "check", "--json", "--disk=/logs", "--peers=a:1,[::1]:2", "--disk=/x"));
  EXPECT_THAT(NodeCheckCommand("builtins", {}, "", scratch.fs()), ElementsAre("builtins"));
}

}  // namespace
}  // namespace muster::agent
