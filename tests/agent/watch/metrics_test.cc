// SPDX-License-Identifier: Apache-2.0
#include "agent/watch/metrics.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Metrics, LabelsAreEscaped) {
  EXPECT_EQ(EscapeLabel("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
  EXPECT_EQ(EscapeLabel("\xc3\xb6 {},="), "\xc3\xb6 {},=");
  EXPECT_EQ(EscapeLabel("x\xffy\xc3"), "x\uFFFDy\uFFFD");
  Metrics metrics;
  metrics.run_id = "a\"} 7\nmuster_round 9";
  EXPECT_THAT(ToExposition(metrics), HasSubstr("{run_id=\"a\\\"} 7\\nmuster_round 9\",node=\"\"} 1\n"));
}

TEST(Metrics, ABucketHoldsItsBound) {
  RestartHistogram histogram;
  for (double seconds : {0.0, 0.05, 0.051, 600.0, 601.0}) histogram.Add(seconds);
  Metrics metrics;
  metrics.time_to_restart = histogram;
  std::string text = ToExposition(metrics);
  EXPECT_THAT(text, HasSubstr("_bucket{le=\"0.05\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{le=\"0.1\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{le=\"300\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{le=\"600\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{le=\"+Inf\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("_seconds_count 5\n"));
}

TEST(Metrics, TheFirstOutputIsThereWhenItCame) {
  Metrics metrics;
  EXPECT_THAT(ToExposition(metrics), Not(HasSubstr("first_output")));
  metrics.first_output_seconds = 0.0345;
  EXPECT_THAT(ToExposition(metrics),
              HasSubstr("# TYPE muster_first_output_seconds gauge\nmuster_first_output_seconds 0.0345\n"));
}

TEST(Metrics, EveryLineIsASampleOrSaysWhatFollows) {
  Metrics metrics;
  metrics.restarts = {{"fatal", 1}, {"peer", 0}};
  metrics.first_output_seconds = 1.5;
  EXPECT_THAT(ToExposition(metrics), Not(HasSubstr("muster_store")));
  metrics.store = StoreMetrics{.operations = 12'345'678'901, .connections = 3, .accepted = 4, .violations = 5};
  std::string text = ToExposition(metrics);
  EXPECT_THAT(text, HasSubstr("\nmuster_store_operations_total 12345678901\n"));
  EXPECT_TRUE(text.ends_with("\n"));
  std::string name;
  for (std::string_view line : Split(text, '\n')) {
    if (line.empty()) continue;
    if (line.starts_with("# HELP ")) {
      name = line.substr(7, line.find(' ', 7) - 7);
    } else if (line.starts_with("# TYPE ")) {
      EXPECT_EQ(line.substr(7, name.size()), name);
      EXPECT_EQ(name.ends_with("_total"), line.ends_with(" counter")) << line;
    } else {
      EXPECT_TRUE(line.starts_with(name)) << line;
      EXPECT_TRUE(ParseDouble(line.substr(line.rfind(' ') + 1))) << line;
    }
  }
}

}  // namespace
}  // namespace muster::agent
