// SPDX-License-Identifier: Apache-2.0
#include "base/exit_codes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "base/text.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ExitCodes, EachCodeHasItsClassUnlessOverridden) {
  for (int code = 0; code <= 255; ++code) {
    ExitClass expected = code == 0 ? ExitClass::kSuccess : code < 128 ? ExitClass::kFatal : ExitClass::kRetryable;
    EXPECT_EQ(Classify(code), expected) << code;
  }
  ExitCodeOverrides moved{{3, 93}, {137}};
  EXPECT_EQ(Classify(3, moved), ExitClass::kRetryable);
  EXPECT_EQ(Classify(137, moved), ExitClass::kFatal);
  EXPECT_EQ(Classify(0, {{0}, {0}}), ExitClass::kSuccess);
  for (const auto& [one, name] : std::initializer_list<std::pair<ExitClass, const char*>>{
           {ExitClass::kSuccess, "success"}, {ExitClass::kFatal, "fatal"}, {ExitClass::kRetryable, "retryable"}}) {
    EXPECT_EQ(ExitClassName(one), name);
    EXPECT_EQ(ParseExitClass(name), one);
  }
  EXPECT_EQ(ParseExitClass("Fatal"), std::nullopt);
  EXPECT_EQ(ParseExitClass(""), std::nullopt);
}

// The rows of docs/exit-codes.md: | code | meaning | class |
std::map<int, std::pair<std::string, std::string>> DocumentedCodes() {
  std::map<int, std::pair<std::string, std::string>> rows;
  std::ifstream file("docs/exit-codes.md");
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string_view> cells = Split(line, '|');
    if (cells.size() < 5) continue;
    auto code = ParseInt(Strip(cells[1]));
    if (code) rows[static_cast<int>(*code)] = {std::string(Strip(cells[2])), std::string(Strip(cells[3]))};
  }
  return rows;
}

TEST(ExitCodes, TheDocumentSaysTheSame) {
  auto rows = DocumentedCodes();
  for (int code : {0, kExitUsage, kExitBadConfiguration, kExitDrillMissed, kExitNoProgress, kExitNotExecutable,
                   kExitNotFound, kExitStopped, kExitRendezvousTimeout, kExitCoordinatorLost, kExitPeerFailed,
                   kExitHang, kExitNodeUnhealthy, kExitSourceUnreachable}) {
    ASSERT_TRUE(rows.contains(code)) << code << " is missing in docs/exit-codes.md";
  }
  for (const auto& [code, row] : rows) {
    EXPECT_EQ(row.second, ExitClassName(Classify(code))) << code;
    std::string meaning = code > 128 && code < 200 ? DescribeEnd(code, code - 128) : DescribeExit(code);
    EXPECT_THAT(row.first, HasSubstr(meaning.substr(0, meaning.find(" (exit code")))) << code;
  }
}

TEST(ExitCodes, DescriptionsNameTheSignal) {
  EXPECT_EQ(DescribeExit(0), "success");
  EXPECT_EQ(DescribeExit(3), "exit code 3");
  EXPECT_EQ(DescribeExit(137), "exit code 137 (128 + SIGKILL)");
  EXPECT_EQ(DescribeExit(139), "exit code 139 (128 + SIGSEGV)");
  EXPECT_EQ(DescribeExit(255), "exit code 255");
  EXPECT_EQ(DescribeEnd(137, 9), "killed by SIGKILL");
  EXPECT_EQ(DescribeEnd(137, 0), "exit code 137 (128 + SIGKILL)");
  EXPECT_EQ(DescribeEnd(168, 40), "killed by signal 40");
  EXPECT_THAT(DescribeExit(kExitNoProgress), HasSubstr("no progress"));
}

TEST(ExitCodes, SayWhereTheCauseIs) {
  for (int code = 0; code <= 255; ++code) {
    const CauseIn expected = code == kExitRendezvousTimeout || code == kExitCoordinatorLost ? CauseIn::kRendezvous
                             : code == kExitPeerFailed                                      ? CauseIn::kPeer
                                                                                            : CauseIn::kNode;
    EXPECT_EQ(WhereCauseIs(code), expected) << code;
  }
}

TEST(ExitCodes, SignalsAreReadAndWrittenByName) {
  EXPECT_EQ(SignalName(15), "SIGTERM");
  EXPECT_EQ(SignalName(99), "signal 99");
  for (const char* text : {"TERM", "SIGTERM", "sigterm", "15", " Term "})
    EXPECT_EQ(ParseSignal(text).value_or(0), 15) << text;
  for (int number = 1; number <= 64; ++number) EXPECT_EQ(ParseSignal(SignalName(number)).value_or(0), number);
  for (const char* text : {"", "SIG", "SIGNO", "0", "-1", "65", "999", "1x", "signal ", "signal 65", "SIGsignal 9"}) {
    EXPECT_THAT(Message(ParseSignal(text).status()), HasSubstr(fmt::format("'{}'", text)));
  }
}

TEST(ExitCodes, ListsOfCodesAndRangesAreRead) {
  EXPECT_THAT(*ParseExitCodes("130, 137-139 ,1,"), ElementsAre(1, 130, 137, 138, 139));
  EXPECT_THAT(*ParseExitCodes(""), testing::IsEmpty());
  for (const char* text : {"0", "256", "5-3", "x", "1-", "-1", "1-300"}) {
    EXPECT_THAT(Message(ParseExitCodes(text).status()), HasSubstr(text));
  }
}

}  // namespace
}  // namespace muster
