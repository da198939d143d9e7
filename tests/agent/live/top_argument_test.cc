// SPDX-License-Identifier: Apache-2.0
// The argument of `muster top`.
#include "agent/live/top_argument.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using testing::HasSubstr;
using Kind = TopTarget::Kind;

TEST(TopArgument, Targets) {
  const struct {
    const char* text;
    TopTarget target;
  } rows[] = {
      {"master-0", {.kind = Kind::kCoordinator, .host = "master-0", .port = 29400}},
      {"master-0:1", {.kind = Kind::kCoordinator, .host = "master-0", .port = 1}},
      {"[::1]:1", {.kind = Kind::kCoordinator, .host = "::1", .port = 1}},
      {"http://10.0.0.7", {.kind = Kind::kAgent, .host = "10.0.0.7", .port = 29480}},
      {"http://10.0.0.7:80/", {.kind = Kind::kAgent, .host = "10.0.0.7", .port = 80}},
      {"http://10.0.0.7:9/status", {.kind = Kind::kAgent, .host = "10.0.0.7", .port = 9}},
      {"http://[::1]", {.kind = Kind::kAgent, .host = "::1", .port = 29480}},
      {"http://[::1]:9", {.kind = Kind::kAgent, .host = "::1", .port = 9}},
      {"trainjob/digits", {.kind = Kind::kTrainJob, .name = "digits"}},
      {"pytorchjob/digits", {.kind = Kind::kPyTorchJob, .name = "digits"}},
      {"pod/digits-0", {.kind = Kind::kPod, .name = "digits-0"}},
  };
  for (const auto& row : rows) {
    const auto target = ParseTopTarget(row.text);
    ASSERT_TRUE(target.ok()) << row.text << ": " << target.status();
    EXPECT_EQ(*target, row.target) << row.text;
  }
}

TEST(TopArgument, WhatIsWrongIsSaid) {
  const struct {
    const char *text, *said;
  } rows[] = {
      {"", ""},
      {"https://a", "has no TLS"},
      {"http://a/metrics", "without a path"},
      {"trainjob/", "'' is not a name"},
      {"pod/-n", "'-n' is not a name"},
      {"job/a", "want HOST[:PORT]"},
      {"a:99999", "99999"},
  };
  for (const auto& row : rows) {
    const auto target = ParseTopTarget(row.text);
    ASSERT_FALSE(target.ok()) << row.text;
    EXPECT_THAT(std::string(Message(target.status())), HasSubstr(row.said)) << row.text;
  }
}

}  // namespace
}  // namespace muster::agent
