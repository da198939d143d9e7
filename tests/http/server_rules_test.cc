// SPDX-License-Identifier: Apache-2.0
#include "http/server_rules.h"

#include <gtest/gtest.h>

namespace muster::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{seconds(1000)};

Guest Of(const char* address, Stage stage, int second, size_t bytes = 0) {
  return {address, stage, kStart + seconds(second), bytes};
}

TEST(ServerRules, ACrowdYieldsItsOwnConnections) {
  using enum Stage;
  const struct {
    const char* name;
    std::vector<Guest> guests;
    std::optional<size_t> yields;
  } rows[] = {
      {"nobody is there", {}, std::nullopt},
      {"all are answered", {Of("a", kAnswering, 1), Of("a", kAnswering, 2)}, std::nullopt},
      {"the only one that is not answered", {Of("a", kAnswering, 1), Of("b", kReceiving, 2)}, 1},
      {"the oldest of the crowd", {Of("api", kIdle, 0), Of("b", kNew, 2), Of("b", kNew, 1)}, 2},
      {"the crowd, though it has spoken and the other has not",
       {Of("api", kNew, 0), Of("b", kIdle, 1), Of("b", kIdle, 2)},
       1},
      {"of one address: first what has never spoken", {Of("a", kIdle, 0), Of("a", kNew, 9), Of("a", kReceiving, 1)}, 1},
      {"of one address: then what is idle", {Of("a", kReceiving, 0), Of("a", kIdle, 9), Of("a", kAnswering, 1)}, 1},
      {"answers under way make no crowd",
       {Of("api", kAnswering, 0), Of("api", kAnswering, 0), Of("api", kNew, 1), Of("b", kNew, 2), Of("b", kNew, 3)},
       3},
  };
  for (const auto& row : rows) EXPECT_EQ(YieldsConnection(row.guests), row.yields) << row.name;
}

TEST(ServerRules, TheAddressWithTheMostUnfinishedBytesYields) {
  using enum Stage;
  const struct {
    const char* name;
    std::vector<Guest> guests;
    std::optional<size_t> yields;
  } rows[] = {
      {"nobody is there", {}, std::nullopt},
      {"nothing is unfinished", {Of("a", kAnswering, 1, 100), Of("b", kIdle, 2)}, std::nullopt},
      {"an answered request stays", {Of("a", kAnswering, 1, 100), Of("b", kNew, 2, 10)}, 1},
      {"many small ones are more than a large one",
       {Of("api", kReceiving, 0, 15), Of("b", kNew, 2, 10), Of("b", kNew, 1, 9)},
       2},
      {"the first of one address", {Of("a", kReceiving, 3, 1), Of("a", kReceiving, 2, 100), Of("a", kNew, 4, 50)}, 1},
      {"what holds nothing is not closed", {Of("a", kNew, 0, 0), Of("a", kNew, 1, 5)}, 1},
  };
  for (const auto& row : rows) EXPECT_EQ(YieldsMemory(row.guests), row.yields) << row.name;
}

TEST(ServerRules, TheDeadlineGrowsWithTheBytesReceived) {
  const TimePoint limit = kStart + seconds(10);
  EXPECT_EQ(DueBy(kStart, 0, limit), kStart + seconds(3));
  EXPECT_EQ(DueBy(kStart, 64 << 10, limit), kStart + seconds(4));
  EXPECT_EQ(DueBy(kStart, 96 << 10, limit), kStart + milliseconds(4500));
  EXPECT_EQ(DueBy(kStart, 6 << 20, limit), limit);
  EXPECT_EQ(DueBy(kStart, 1, kStart + milliseconds(50)), kStart + milliseconds(50));
}

TEST(ServerRules, ARequestHasOneEnd) {
  const struct {
    int minor;
    Headers fields;
    int status;  // 0: it is accepted
  } rows[] = {
      {1, {}, 0},
      {1, {{"host", "a"}, {"content-length", "5"}}, 0},
      {1, {{"transfer-encoding", "chunked"}}, 0},
      {1, {{"transfer-encoding", "Chunked"}}, 0},
      {1, {{"transfer-encoding", "xchunked"}}, 501},
      {1, {{"transfer-encoding", "gzip, chunked"}}, 501},
      {1, {{"transfer-encoding", "chunked, gzip"}}, 501},
      {1, {{"transfer-encoding", "chunked,"}}, 501},
      {1, {{"transfer-encoding", ""}}, 501},
      {1, {{"transfer-encoding", "chunked"}, {"transfer-encoding", "chunked"}}, 400},
      {1, {{"transfer-encoding", "chunked"}, {"content-length", "5"}}, 400},
      {1, {{"content-length", "5"}, {"transfer-encoding", "xchunked"}}, 400},
      {0, {{"transfer-encoding", "chunked"}}, 400},
      {1, {{"content-length", "5"}, {"content-length", "5"}}, 400},
      {1, {{"content-length", "5"}, {"content-length", "6"}}, 400},
      {1, {{"content-length", "5, 5"}}, 400},
      {1, {{"content-length", "+5"}}, 400},
      {1, {{"content-length", ""}}, 400},
      {1, {{"host", "a"}, {"host", "b"}}, 400},
  };
  for (const auto& row : rows) {
    const auto bad = JudgeFraming(row.minor, row.fields);
    std::string text;
    for (const auto& [name, value] : row.fields) text += name + ": " + value + "; ";
    EXPECT_EQ(bad ? bad->status : 0, row.status) << text;
  }
}

TEST(ServerRules, AFoldedLineBeginsWithABlank) {
  EXPECT_FALSE(HasFoldedLine("GET / HTTP/1.1\r\nA: b c\r\nD:\te"));
  EXPECT_TRUE(HasFoldedLine("GET / HTTP/1.1\r\nA: b\r\n c"));
  EXPECT_TRUE(HasFoldedLine("GET / HTTP/1.1\r\nA: b\r\n\tc"));
}

}  // namespace
}  // namespace muster::http
