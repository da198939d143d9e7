// SPDX-License-Identifier: Apache-2.0
#include "usage/app_command.h"

#include <gmock/gmock.h>

namespace muster::usage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AppCommand, FlagsAndOperands) {
  CLI::App app{"Print things", "prog"};
  std::string text, path, format = "yaml", level;
  std::vector<std::string> files;
  bool on = false;
  int number = 7;
  app.add_option("FILE", files, "what to read")->required();
  app.add_option("-o,--output", path, "where to write")->type_name("FILE");
  app.add_option("--format", format, "the form")->check(CLI::IsMember({"yaml", "json"}))->capture_default_str();
  app.add_option("--level", level, "how much")->type_name("debug|info")->envname("PROG_LEVEL");
  app.add_option("--number", number, "a number")->check(CLI::Range(1, 9));
  app.add_flag("--on,!--off", on, "switch");
  const Command command = Describe(app);
  EXPECT_EQ(command.name, "prog");
  EXPECT_EQ(command.summary, "Print things");
  ASSERT_EQ(command.operands.size(), 1u);
  EXPECT_EQ(command.operands[0].metavar, "FILE");
  EXPECT_EQ(command.operands[0].help, "what to read");
  ASSERT_EQ(command.flags.size(), 6u);
  EXPECT_THAT(command.flags[0].names, ElementsAre("-h", "--help"));
  EXPECT_EQ(command.flags[0].metavar, "");
  EXPECT_THAT(command.flags[1].names, ElementsAre("-o", "--output"));
  EXPECT_EQ(command.flags[1].metavar, "FILE");
  EXPECT_EQ(command.flags[2].metavar, "TEXT");
  EXPECT_THAT(command.flags[2].choices, ElementsAre("yaml", "json"));
  EXPECT_EQ(command.flags[2].fallback, "yaml");
  EXPECT_EQ(command.flags[3].metavar, "debug|info");
  EXPECT_THAT(command.flags[3].choices, IsEmpty());
  EXPECT_THAT(command.flags[3].variables, ElementsAre("PROG_LEVEL"));
  EXPECT_EQ(command.flags[4].metavar, "INT");
  EXPECT_THAT(command.flags[4].choices, IsEmpty());
  EXPECT_THAT(command.flags[5].names, ElementsAre("--on", "--off"));
  EXPECT_EQ(command.flags[5].metavar, "");
}

TEST(AppCommand, AnOperandHasTheWordsOfItsType) {
  CLI::App app{"", "prog"};
  std::string kind;
  app.add_option("kind", kind, "of job")->type_name("torch|mpi");
  const Command command = Describe(app);
  EXPECT_EQ(command.operands[0].metavar, "kind");
  EXPECT_THAT(command.operands[0].choices, ElementsAre("torch", "mpi"));
}

TEST(AppCommand, Subcommands) {
  CLI::App app{"A program", "prog"};
  app.add_subcommand("run", "run it")->add_subcommand("now", "at once");
  const Command command = Describe(app);
  ASSERT_NE(FindCommand(command, "run"), nullptr);
  EXPECT_EQ(FindCommand(command, "run")->name, "prog run");
  EXPECT_EQ(FindCommand(command, "run")->summary, "run it");
  EXPECT_EQ(FindCommand(*FindCommand(command, "run"), "now")->name, "prog run now");
  EXPECT_EQ(FindCommand(command, "stop"), nullptr);
}

}  // namespace
}  // namespace muster::usage
