// SPDX-License-Identifier: Apache-2.0
#include "base/iso_time.h"

#include <gmock/gmock.h>

namespace muster {
namespace {

TEST(IsoTime, IsRead) {
  const struct {
    std::string_view text;
    int64_t seconds;
  } rows[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"2026-11-22T01:02:03Z", 1795309323},
      {" 2026-11-22T01:02:03Z\n", 1795309323},
      {"2026-11-22T01:02:03.363437Z", 1795309323},
      {"2026-11-22t01:02:03,9z", 1795309323},
      {"2026-11-22 01:02:03UTC", 1795309323},
      {"2026-11-22T01:02:03UTC", 1795309323},
      {"2026-11-22T02:32:03+01:30", 1795309323},
      {"2026-11-21T20:02:03.5-0500", 1795309323},
      {"2026-11-22T01:02:03+00:00", 1795309323},
      {"2028-02-29T23:59:59Z", 1835481599},
      {"2016-12-31T23:59:60Z", 1483228800},  // a leap second is the next second
      {"1969-12-31T23:59:59Z", -1},
      {"0001-01-01T00:00:00Z", -62135596800},  // Go's zero
      {"9999-12-31T23:59:59Z", 253402300799},
  };
  for (const auto& row : rows) {
    auto time = ParseIsoTime(row.text);
    ASSERT_TRUE(time.ok()) << row.text << ": " << time.status();
    EXPECT_EQ(*time, row.seconds) << row.text;
  }
}

TEST(IsoTime, IsReadToTheMicrosecond) {
  const struct {
    std::string_view text;
    int64_t microseconds;
  } rows[] = {
      {"1970-01-01T00:00:01Z", 1'000'000},
      {"1970-01-01T00:00:01.5Z", 1'500'000},
      {"1970-01-01T00:00:01.000004Z", 1'000'004},
      {"1970-01-01T00:00:01.0000049Z", 1'000'004},  // dropped, not rounded
      {"1970-01-01T00:00:01.123456789123456789123456789Z", 1'123'456},
      {"1969-12-31T23:59:59.25Z", -750'000},
      {"2026-11-22T02:32:03.363437+01:30", 1795309323'363437},
  };
  for (const auto& row : rows) {
    const auto time = ParseWallTime(row.text);
    ASSERT_TRUE(time.ok()) << row.text << ": " << time.status();
    EXPECT_EQ(time->time_since_epoch().count(), row.microseconds) << row.text;
  }
}

TEST(IsoTime, IsWritten) {
  const struct {
    int64_t microseconds;
    std::string_view seconds, micro;
  } rows[] = {
      {0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
      {1795309323'000004, "2026-11-22T01:02:03Z", "2026-11-22T01:02:03.000004Z"},
      {1795309323'999999, "2026-11-22T01:02:03Z", "2026-11-22T01:02:03.999999Z"},
      {-750'000, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.250000Z"},
      {1835481599'000000, "2028-02-29T23:59:59Z", "2028-02-29T23:59:59.000000Z"},
  };
  for (const auto& row : rows) {
    const WallTime time{std::chrono::microseconds(row.microseconds)};
    EXPECT_EQ(IsoTime(time), row.seconds);
    EXPECT_EQ(IsoMicroTime(time), row.micro);
    EXPECT_EQ(*ParseWallTime(row.micro), time);
  }
}

TEST(IsoTime, ThatIsNoneIsNamed) {
  const std::string_view texts[] = {
      "",
      "tomorrow",
      "1795309323",
      "2026-11-22",
      "2026-11-22T01:02:03",  // no zone
      "2026-11-22T01:02Z",
      "2026-11-22T01:02:03.Z",
      "2026-11-22T01:02:03ZZ",
      "2026-11-22T01:02:03+1",
      "2026-11-22T01:02:03+01:30x",
      "2026-11-22T01:02:03+24:00",
      "2026-11-22T01:02:03+00:60",
      "2026-13-01T00:00:00Z",
      "2026-00-01T00:00:00Z",
      "2026-02-29T00:00:00Z",
      "2026-11-22T24:00:00Z",
      "2026-11-22T23:60:00Z",
      "2026-11-22T23:59:61Z",
      "26-11-22T01:02:03Z",
      "+026-11-22T01:02:03Z",
      "2026-11-22T-1:02:03Z",
      "2026/11/22T01:02:03Z",
  };
  for (std::string_view text : texts) {
    auto time = ParseIsoTime(text);
    ASSERT_FALSE(time.ok()) << text;
    EXPECT_EQ(time.status().message(), "'" + std::string(text) + "' is not a time; write it as 2026-11-22T01:02:03Z");
  }
  EXPECT_LT(ParseIsoTime(std::string(5000, '1')).status().message().size(), 300U);
  EXPECT_EQ(ParseIsoTime("1\n2").status().message(), "'1\\x0a2' is not a time; write it as 2026-11-22T01:02:03Z");
}

}  // namespace
}  // namespace muster
