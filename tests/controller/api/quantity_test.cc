// SPDX-License-Identifier: Apache-2.0
#include "controller/api/quantity.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace muster::controller {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

Quantity Of(std::string_view text) {
  auto quantity = ParseQuantity(text);
  EXPECT_TRUE(quantity.ok()) << text << ": " << quantity.status();
  return quantity.value_or(Quantity());
}

TEST(Quantity, OneAmountHasManySpellings) {
  const std::string_view rows[][2] = {
      {"1", "1000m"},
      {"1", "1.000"},
      {"1", "+1"},
      {"1", "01"},
      {"0", "-0"},
      {"0", "0Ki"},
      {"0.5", ".5"},
      {"5", "5."},
      {"0.1", "100m"},
      {"1m", "1000u"},
      {"1u", "1000n"},
      {"1k", "1000"},
      {"1M", "1000k"},
      {"1G", "1e9"},
      {"1T", "1E12"},
      {"1P", "1e+15"},
      {"1E", "1000P"},
      {"1Ki", "1024"},
      {"1Mi", "1024Ki"},
      {"1Gi", "1024Mi"},
      {"1Ti", "1024Gi"},
      {"1Pi", "1024Ti"},
      {"1Ei", "1024Pi"},
      {"1.5Gi", "1536Mi"},
      {"0.000000001Ei", "1152921504.606846976"},
      {"2e3", "2000"},
      {"2e-3", "2m"},
      {"-500m", "-0.5"},
      {"1e-10", "1n"},  // finer than a billionth: rounded away from zero
      {"-1e-10", "-1n"},
      {"0.0000000011", "2n"},
      {"1e-1000", "1n"},
      {"0e1000", "0"},
      {"9223372036854775807", "9223372036854775808"},  // the limit
      {"9223372036854775807", "1e1000"},
      {"9223372036854775807", "99999999999999999999999999999999999999999999Ei"},
      {"-9223372036854775807", "-8Ei"},
      {"1.50000000000000000000000000000", "1500m"},
      {"1.50000000000000000000000000000Ki", "1536"},
  };
  for (const auto& [a, b] : rows) EXPECT_EQ(Of(a), Of(b)) << a << " " << b;
}

TEST(Quantity, AmountsAreOrderedAcrossSuffixes) {
  const std::string_view rows[] = {"-8Ei", "-1",          "-1n", "0",  "1n",  "1u", "999u", "1m", "0.999999999",
                                   "1",    "1.000000001", "999", "1k", "1Ki", "1M", "1Mi",  "7Ei"};
  for (size_t i = 1; i < std::size(rows); ++i) EXPECT_LT(Of(rows[i - 1]), Of(rows[i])) << rows[i];
}

TEST(Quantity, UnitsRoundAwayFromZero) {
  const struct {
    std::string_view text;
    int64_t units;
  } rows[] = {{"0", 0},       {"1n", 1},   {"500m", 1}, {"1", 1},       {"1001m", 2},    {"1Ki", 1024},
              {"-1500m", -2}, {"-1n", -1}, {"4e0", 4},  {"9Ei", kMost}, {"-9Ei", -kMost}};
  for (const auto& row : rows) EXPECT_EQ(Of(row.text).Units(), row.units) << row.text;
  EXPECT_EQ(Quantity(3), Of("3"));
  EXPECT_EQ(Quantity(kMost).Units(), kMost);
  EXPECT_EQ(Quantity(std::numeric_limits<int64_t>::min()), Of("-9Ei"));
  EXPECT_TRUE(Quantity().IsZero());
  EXPECT_FALSE(Of("1n").IsZero());
}

TEST(Quantity, IsReadFromJsonTextsAndNumbers) {
  EXPECT_EQ(*ReadQuantity(Json("500m")), Of("0.5"));
  EXPECT_EQ(*ReadQuantity(Json(2)), Of("2"));
  EXPECT_EQ(*ReadQuantity(Json(0.25)), Of("250m"));
  EXPECT_EQ(*ReadQuantity(Json(1e20)), Of("9Ei"));
  EXPECT_EQ(Message(ReadQuantity(Json(true)).status()), "true is not a quantity such as 4, 500m, 16Gi or 2e3");
  EXPECT_FALSE(ReadQuantity(Json()).ok());
  EXPECT_FALSE(ReadQuantity(Json::array()).ok());
}

TEST(Quantity, RefusesWhatKubernetesRefuses) {
  for (const std::string& text : {std::string(),
                                  std::string("."),
                                  std::string("Ki"),
                                  std::string("-"),
                                  std::string("1 "),
                                  std::string(" 1"),
                                  std::string("1 Gi"),
                                  std::string("1kb"),
                                  std::string("1K"),
                                  std::string("1gi"),
                                  std::string("1mi"),
                                  std::string("1e"),
                                  std::string("e3"),
                                  std::string("1e3m"),
                                  std::string("1e+-3"),
                                  std::string("1e1.5"),
                                  std::string("--1"),
                                  std::string("1.2.3"),
                                  std::string("four"),
                                  std::string("1\0", 2),
                                  std::string(300, '1'),
                                  std::string("0.1234567890123456789Ki"),
                                  std::string("1e99999999999999999999")}) {
    EXPECT_FALSE(ParseQuantity(text).ok()) << text;
  }
  EXPECT_EQ(Message(ParseQuantity("1 Gi").status()), "'1 Gi' is not a quantity such as 4, 500m, 16Gi or 2e3");
}

TEST(Quantity, SumsAndProducts) {
  const auto read = [](std::string_view text) { return *ParseQuantity(text); };
  struct Row {
    Quantity quantity;
    std::string text;
  };
  for (const Row& row : std::vector<Row>{
           {Quantity(), "0"},
           {read("4"), "4"},
           {read("1.5"), "1500m"},
           {read("-1.5"), "-1500m"},
           {read("16Gi"), "17179869184"},
           {read("2u"), "2u"},
           {read("3n"), "3n"},
           {read("500m") + read("0.5"), "1"},
           {read("1500m").Times(3), "4500m"},
           {read("1").Times(0), "0"},
           {read("9223372036854775807") + read("1"), "9223372036854775807"},
           {read("5E").Times(1'000'000'000'000), "9223372036854775807"},
           {read("9223372036854775806.5"), "9223372036854775807"},
       }) {
    EXPECT_EQ(row.quantity.Text(), row.text);
  }
}

}  // namespace
}  // namespace muster::controller
