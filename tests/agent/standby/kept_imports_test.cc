// SPDX-License-Identifier: Apache-2.0
// The file that keeps what a script imports.
#include "agent/standby/kept_imports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent::standby {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string kScript(64, 'a'), kVersions(64, '0');

TEST(KeptImports, AreReadAsTheyWereWritten) {
  const std::vector<std::string> names = {"torch", "=environ:A=00ff", "=file:own:/my folder/own.py",
                                          "torch.distributed"};
  const std::string text = FormatKeptImports(kVersions, names);
  EXPECT_EQ(text, "muster imports 2\n" + kVersions +
                      "\ntorch\n=environ:A=00ff\n=file:own:/my folder/own.py\ntorch.distributed\n");
  EXPECT_EQ(ParseKeptImports(text, kVersions), names);
}

TEST(KeptImports, AreNoneForAnotherVersionOrForm) {
  const std::string text = FormatKeptImports(kVersions, {"torch"});
  EXPECT_THAT(ParseKeptImports(text, kScript), IsEmpty());
  for (size_t end = 0; end < text.size(); ++end) {  // cut off
    EXPECT_THAT(ParseKeptImports(text.substr(0, end), kVersions), IsEmpty()) << end;
  }
  EXPECT_THAT(ParseKeptImports("x" + text, kVersions), IsEmpty());
  EXPECT_THAT(ParseKeptImports("muster imports 1\n" + kVersions + "\ntorch\n", kVersions), IsEmpty());
}

TEST(KeptImports, HaveAtMostAMebibyte) {
  const std::vector<std::string> names(20'000, std::string(512, 'x'));
  const std::string text = FormatKeptImports(kVersions, names);
  EXPECT_LE(text.size(), size_t{1} << 20);
  EXPECT_EQ(ParseKeptImports(text, kVersions).size(), 2043u);
  EXPECT_THAT(ParseKeptImports(text + std::string(2000, 'x') + "\n", kVersions), IsEmpty());
}

TEST(ScriptFacts, AreTwoDigests) {
  const auto facts = ParseScriptFacts(kScript + std::string(1, '\0') + kVersions);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(*facts, (ScriptFacts{kScript, kVersions}));
  for (const std::string& body :
       {std::string(), kScript, kScript + kVersions, "../" + kScript + std::string(1, '\0') + kVersions,
        std::string(64, 'g') + std::string(1, '\0') + kVersions}) {
    EXPECT_FALSE(ParseScriptFacts(body).ok()) << body;
  }
}

}  // namespace
}  // namespace muster::agent::standby
