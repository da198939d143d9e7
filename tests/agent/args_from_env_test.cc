// SPDX-License-Identifier: Apache-2.0
// `muster exec --args-from-env`.
#include "agent/args_from_env.h"

#include <gmock/gmock.h>

#include "base/status.h"

namespace muster::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

TEST(ArgsFromEnv, WithoutTheFlagWordsStay) {
  const Environment environment = {{"MUSTER_ARG_0", "x"}};
  for (const Words& words : {Words{}, Words{"--", "MUSTER_ARG_0"}, Words{"echo", "--args-from-env", "MUSTER_ARG_0"}}) {
    const auto whole = ReadArgsFromEnv(words, environment);
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_EQ(whole->arguments, words);
    EXPECT_EQ(whole->variables, Words());
  }
}

TEST(ArgsFromEnv, WordsOfTheCommandAreReplaced) {
  const Environment environment = {{"MUSTER_ARG_2", "cd $HOME && echo \"$(LR)\" $(none) $$(LR)"},
                                   {"MUSTER_ARG_3", ""},
                                   {"MUSTER_ARG_4", "MUSTER_ARG_2"},
                                   {"LR", "0.1"},
                                   {"DB_PORT", "tcp://10.0.0.1:80"},
                                   {"MUSTER_ARG_5", "$(DB_PORT)"}};
  const auto whole =
      ReadArgsFromEnv({"--wire=torch", "--args-from-env", "--node-name", "MUSTER_ARG_2", "--", "bash", "-c",
                       "MUSTER_ARG_2", "MUSTER_ARG_3", "MUSTER_ARG_4", "MUSTER_ARG_5", "MUSTER_ARG_x"},
                      environment);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->arguments, ElementsAre("--wire=torch", "--node-name", "MUSTER_ARG_2", "--", "bash", "-c",
                                            "cd $HOME && echo \"0.1\" $(none) $(LR)", "", "MUSTER_ARG_2",
                                            "tcp://10.0.0.1:80", "MUSTER_ARG_x"));
  EXPECT_THAT(whole->variables, ElementsAre("MUSTER_ARG_2", "MUSTER_ARG_3", "MUSTER_ARG_4", "MUSTER_ARG_5"));
}

TEST(ArgsFromEnv, AMissingVariableIsSaid) {
  const auto whole = ReadArgsFromEnv({"--args-from-env", "--", "bash", "-c", "MUSTER_ARG_2"}, {});
  EXPECT_TRUE(absl::IsInvalidArgument(whole.status()));
  EXPECT_THAT(Message(whole.status()), HasSubstr("the variable MUSTER_ARG_2 is not set"));
}

}  // namespace
}  // namespace muster::agent
