// SPDX-License-Identifier: Apache-2.0
// The rows were compared with Python's shlex.split, which the AWS CLI uses for credential_process.
#include "initializers/facts/command_words.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace muster::initializers {
namespace {

std::string Split(std::string_view line) {
  const auto words = SplitWords(line);
  return words.ok() ? Join(*words, "|") : "error: " + std::string(Message(words.status()));
}

TEST(CommandWords, AreSplitAsAShellDoes) {
  const struct {
    std::string_view line, words;
  } rows[] = {
      {"/bin/p", "/bin/p"},
      {"  p  --user\tme \r\n", "p|--user|me"},
      {R"("/opt/my tools/p" --user 'some one')", "/opt/my tools/p|--user|some one"},
      {R"(p a'b c'd"e f"g)", "p|ab cde fg"},
      {R"(p '' "" x)", "p|||x"},
      {R"(p \'a\ b\\ \n)", R"(p|'a b\|n)"},
      {R"(p "a\"b\\c\nd\$e")", R"(p|a"b\c\nd\$e)"},
      {R"(p 'a\"b\')", R"(p|a\"b\)"},
      {R"(p '"' "'")", R"(p|"|')"},
      {"p $HOME ~/x *.y | q # no; comment > f `g` &", "p|$HOME|~/x|*.y|||q|#|no;|comment|>|f|`g`|&"},
      {"p \xc3\xa4", "p|\xc3\xa4"},
  };
  for (const auto& row : rows) EXPECT_EQ(Split(row.line), row.words) << row.line;
}

TEST(CommandWords, ThatAreNone) {
  const struct {
    std::string_view line, words;
  } rows[] = {
      {"", "error: the command line names no command"},
      {" \t", "error: the command line names no command"},
      {"'' secret", "error: the command line names no command"},
      {"p 'secret", "error: the command line has a quote that is not closed"},
      {R"(p "secret\")", "error: the command line has a quote that is not closed"},
      {R"(p secret\)", "error: the command line ends in a backslash"},
      {R"(p "secret\)", "error: the command line ends in a backslash"},
  };
  for (const auto& row : rows) EXPECT_EQ(Split(row.line), row.words) << row.line;
}

}  // namespace
}  // namespace muster::initializers
