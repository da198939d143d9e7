// SPDX-License-Identifier: Apache-2.0
#include "usage/complete.h"

#include <gmock/gmock.h>

#include "tests/usage/some_program.h"

namespace muster::usage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Row {
  std::vector<std::string> words;
  std::vector<std::string> offered;
  Place place = Place::kNone;
  size_t before = 0;
};

void Check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const Answer answer = Complete(SomeProgram(), row.words);
    std::vector<std::string> offered;
    for (const Candidate& candidate : answer.candidates) offered.push_back(candidate.word);
    const std::string shown = testing::PrintToString(row.words);
    EXPECT_EQ(offered, row.offered) << shown;
    EXPECT_EQ(answer.place, row.place) << shown;
    EXPECT_EQ(answer.before, row.before) << shown;
  }
}

TEST(Complete, Subcommands) {
  Check({{{}, {"run", "exec", "wait", "list", "man"}},
         {{""}, {"run", "exec", "wait", "list", "man"}},
         {{"ru"}, {"run"}},
         {{"x"}, {}},
         {{"man", "l"}, {"list"}},
         {{"no-such", "r"}, {}}});
}

TEST(Complete, FlagsAreOfferedOnceTheWordBeginsAsOne) {
  Check({{{"run", "--n"}, {"--node-rank", "--nproc-per-node"}},
         {{"run", "-"},
          {"-h", "--help", "--node-rank", "--nproc-per-node", "-m", "--module", "-r", "--redirects", "--policy",
           "--log-dir", "--secret", "--check"}},
         {{"run", ""}, {}, Place::kFile},
         {{"wait", ""}, {}},
         {{"list", ""}, {"--json"}},
         {{"run", "-mr"}, {}}});
}

TEST(Complete, UnderscoresStayWhereFlagsAreSpelledFreely) {
  Check({{{"run", "--node_"}, {"--node_rank"}},
         {{"run", "--nproc_per_node=a"}, {"--nproc_per_node=auto"}, Place::kNone, 17},
         {{"wait", "--t_"}, {}}});
}

TEST(Complete, ValuesOfFlags) {
  Check({{{"run", "--policy", ""}, {"never", "always"}},
         {{"run", "--policy", "n"}, {"never"}},
         {{"run", "--policy=a"}, {"--policy=always"}, Place::kNone, 9},
         {{"run", "--pol", "n"}, {"never"}},
         {{"run", "--nproc-per-node", ""}, {"auto", "gpu"}},
         {{"run", "--n", "a"}, {}, Place::kFile},  // ambiguous: not known to take a value
         {{"run", "--redirects", "x"}, {}},
         {{"run", "-r", "--n"}, {}},
         {{"run", "-mr", "--n"}, {}},
         {{"run", "-r3", "--nod"}, {"--node-rank"}},
         {{"run", "--redirects=3", "--nod"}, {"--node-rank"}},
         {{"run", "--no-such=x"}, {}},
         {{"run", "--check", "b"}, {"builtin"}, Place::kProgram}});
}

TEST(Complete, Paths) {
  Check({{{"run", "--log-dir", "/t"}, {}, Place::kFolder, 0},
         {{"run", "--log-dir=/t"}, {}, Place::kFolder, 10},
         {{"run", "--log-dir=/a=b"}, {}, Place::kFolder, 10},
         {{"run", "--secret", "hf=/t"}, {}, Place::kFolder, 3},
         {{"run", "--secret=hf=/t"}, {}, Place::kFolder, 12}});
}

TEST(Complete, BehindTheScriptAreItsOwnArguments) {
  Check({{{"run", "train.py", ""}, {}, Place::kFile},
         {{"run", "train.py", "--n"}, {}, Place::kFile},
         {{"run", "-m", "train", "x", ""}, {}, Place::kFile},
         {{"run", "--node-rank", "1", "--", "-"}, {}, Place::kFile},
         {{"exec", ""}, {}, Place::kProgram},
         {{"exec", "--", "py"}, {}, Place::kProgram},
         {{"exec", "--", "python3", "--"}, {}, Place::kFile},
         {{"exec", "run", "l"}, {}, Place::kFile},
         {{"wait", "host", "--t"}, {"--tcp", "--timeout"}},
         {{"wait", "-", "--tcp", "x"}, {}}});
}

TEST(Complete, TheAnswerIsOneLineForEachCandidate) {
  EXPECT_EQ(AnswerText(Complete(SomeProgram(), {"wait", "--t"})),
            "none 0\n--tcp\tuntil the port is open\n--timeout\tlimit\n");
  EXPECT_EQ(AnswerText(Complete(SomeProgram(), {"run", "--log-dir=/"})), "folders 10\n");
  EXPECT_EQ(AnswerText(Complete(SomeProgram(), {"run", "x", ""})), "files 0\n");
  EXPECT_EQ(AnswerText(Complete(SomeProgram(), {"exec", ""})), "programs 0\n");
}

TEST(Complete, ScriptsNameTheProgram) {
  for (std::string_view shell : {"bash", "zsh", "fish"}) {
    EXPECT_THAT(Script(shell, "some-prog"), HasSubstr("some-prog")) << shell;
    EXPECT_THAT(Script(shell, "some-prog"), Not(HasSubstr("PROGRAM"))) << shell;
  }
  EXPECT_EQ(Script("tcsh", "some-prog"), "");
}

TEST(Complete, MetavarsNameWordsAndPlaces) {
  EXPECT_THAT(WordsIn("N|auto|cpu"), ElementsAre("auto", "cpu"));
  EXPECT_THAT(WordsIn("[HOST:]PORT|off"), ElementsAre("off"));
  EXPECT_THAT(WordsIn("endpoint"), ElementsAre());
  EXPECT_EQ(PlaceOf("FILE|URL"), Place::kFile);
  EXPECT_EQ(PlaceOf("[IMAGE=]FOLDER"), Place::kFolder);
  EXPECT_EQ(PlaceOf("PROFILE"), Place::kNone);
  EXPECT_EQ(PlaceOf(""), Place::kNone);
}

}  // namespace
}  // namespace muster::usage
