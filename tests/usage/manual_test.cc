// SPDX-License-Identifier: Apache-2.0
#include "usage/manual.h"

#include <gmock/gmock.h>

#include "tests/usage/some_program.h"

namespace muster::usage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Manual, TextIsShownAsItIs) {
  for (const auto& [text, roff] : std::vector<std::pair<std::string, std::string>>{
           {"plain", "plain"},
           {".SH is no request", "\\&.SH is no request"},
           {"'quoted' at the beginning", "\\(aqquoted\\(aq at the beginning"},
           {"(?P<step>\\d+)", "(?P<step>\\ed+)"},
           {"\\", "\\e"},
           {"--flag", "\\-\\-flag"},
           {"say \"x\"", "say \\(dqx\\(dq"},
           {"~/.kube ^a", "\\(ti/.kube \\(haa"},
           {"`muster ps` shows", "\\fBmuster ps\\fR shows"},
           {"an odd ` mark", "an odd \\fB mark\\fR"},
           {"two\n.lines", "two .lines"},
           {"", ""}}) {
    EXPECT_EQ(RoffText(text), roff);
  }
}

TEST(Manual, OfASubcommand) {
  const Command program = SomeProgram();
  const std::string page = ManualPage(*FindCommand(program, "run"), "Prog 1.0", {"prog"});
  EXPECT_THAT(page, testing::StartsWith(".TH \"PROG\\-RUN\" 1 \"\" \"Prog 1.0\" \"\"\n"));
  EXPECT_THAT(page, HasSubstr(".SH NAME\nprog\\-run \\- run a script\n"));
  EXPECT_THAT(page, HasSubstr("\\fBprog run\\fR [\\fIflags\\fR] \\fISCRIPT\\fR [\\fIarguments\\fR]\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nshow this text\n"));
  EXPECT_THAT(page,
              HasSubstr(".TP\n\\fB\\-\\-node\\-rank\\fR \\fIN\\fR\nrank of this node [default 0; PET_NODE_RANK]\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-\\-policy\\fR \\fIPOLICY\\fR\nwhen to start again (never, always)\n"));
  EXPECT_THAT(page, HasSubstr(".SH \"SEE ALSO\"\n\\fBprog\\fR(1)\n"));
  EXPECT_THAT(page, Not(HasSubstr("SUBCOMMANDS")));
}

TEST(Manual, OfAProgram) {
  const std::string page = ManualPage(SomeProgram(), "Prog 1.0", {"prog run", "prog exec"});
  EXPECT_THAT(page, HasSubstr("\\fBprog\\fR \\fISUBCOMMAND\\fR [\\fIarguments\\fR]\n"));
  EXPECT_THAT(page, HasSubstr(".SH SUBCOMMANDS\n.TP\n\\fBrun\\fR\nrun a script\n"));
  EXPECT_THAT(page, HasSubstr("\\fBprog\\-run\\fR(1), \\fBprog\\-exec\\fR(1)\n"));
  EXPECT_THAT(page, Not(HasSubstr("OPTIONS")));
}

TEST(Manual, GroupsOfFlagsHaveHeadings) {
  Command command{.name = "x", .summary = "y"};
  command.flags = {{.names = {"--a"}, .help = "a", .heading = "One's"},
                   {.names = {"--b"}, .help = "b", .heading = "One's"},
                   {.names = {"--c"}, .help = "c", .heading = "Two"}};
  EXPECT_THAT(ManualPage(command, "", {}), HasSubstr(".SH OPTIONS\n"
                                                     ".SS One\\(aqs\n.TP\n\\fB\\-\\-a\\fR\na\n.TP\n\\fB\\-\\-b\\fR\nb\n"
                                                     ".SS Two\n.TP\n\\fB\\-\\-c\\fR\nc\n"));
}

TEST(Manual, ParagraphsOfTheDescription) {
  EXPECT_THAT(ManualPage({.name = "x", .summary = "y", .description = "one\n.two\n\nthree"}, "", {}),
              HasSubstr(".SH DESCRIPTION\none\n\\&.two\n.PP\nthree\n"));
}

}  // namespace
}  // namespace muster::usage
