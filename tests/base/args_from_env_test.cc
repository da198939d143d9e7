// SPDX-License-Identifier: Apache-2.0
#include "base/args_from_env.h"

#include <gtest/gtest.h>

#include <map>

namespace muster {
namespace {

std::string Expanded(std::string_view text) {
  const std::map<std::string, std::string, std::less<>> variables = {{"A", "one two"}, {"B", "$(A)"}, {"a b", "x"}};
  return ExpandReferences(text, [&](std::string_view name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "$(" + std::string(name) + ")" : found->second;
  });
}

TEST(IsArgVariable, AcceptsNumberedVariablesOnly) {
  EXPECT_EQ(ArgVariable(0), "MUSTER_ARG_0");
  EXPECT_EQ(ArgVariable(12), "MUSTER_ARG_12");
  for (const char* text : {"MUSTER_ARG_0", "MUSTER_ARG_12", "MUSTER_ARG_99999999999999999999"}) {
    EXPECT_TRUE(IsArgVariable(text)) << text;
  }
  for (const char* text : {"", "MUSTER_ARG_", "MUSTER_ARG_x", "MUSTER_ARG_1x", "xMUSTER_ARG_1", "$MUSTER_ARG_1"}) {
    EXPECT_FALSE(IsArgVariable(text)) << text;
  }
}

TEST(ArgsFromEnv, PlainWords) {
  for (const char* word : {"torchrun", "-c", "--lr=0.1", "/opt/conda/bin/python3", "a,b:c", "user@host", "50%", "+1"}) {
    EXPECT_TRUE(IsPlainWord(word)) << word;
  }
  for (const char* word :
       {"",  " ", "a b", "a\nb",  "a\tb", "$HOME", "$(A)", "'", "\"", "`", "\\", "a;b",      "&&",  "|",
        "<", ">", "(",   "{a,b}", "[a]",  "*",     "?",    "~", "#",  "!", "^",  "\xc3\xa9", "\x01"}) {
    EXPECT_FALSE(IsPlainWord(word)) << word;
  }
}

TEST(ArgsFromEnv, ReferencesAreExpandedOnceAsByTheKubelet) {
  struct Row {
    const char *text, *expanded;
  };
  for (const Row& row : {Row{"", ""},
                         {"$(A)", "one two"},
                         {"$(B)", "$(A)"},  // a value is not expanded again
                         {"-$(A)-$(A)-", "-one two-one two-"},
                         {"$(a b)", "x"},
                         {"$(none)", "$(none)"},
                         {"$$(A)", "$(A)"},
                         {"$$$(A)", "$one two"},
                         {"$$$$(A)", "$$(A)"},
                         {"$A ${A} $", "$A ${A} $"},
                         {"$(A", "$(A"},
                         {")$(A", ")$(A"},
                         {"$()", "$()"}}) {
    EXPECT_EQ(Expanded(row.text), row.expanded) << row.text;
  }
}

TEST(ArgsFromEnv, EscapedTextsComeBack) {
  EXPECT_EQ(EscapeReferences("cd $HOME && echo $(date)"), "cd $HOME && echo $$(date)");
  // All texts of up to 6 of these characters.
  const std::string_view letters = "$()A";
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string text = texts[i];
    EXPECT_EQ(Expanded(EscapeReferences(text)), text);
    if (text.size() == 6) continue;
    for (const char letter : letters) texts.push_back(text + letter);
  }
}

TEST(ArgsFromEnv, ManyReferencesWithoutAnEndAreReadOnce) {
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += "$(";
  EXPECT_EQ(Expanded(text), text.substr(0, kLongestForPrograms + 1));
}

}  // namespace
}  // namespace muster
