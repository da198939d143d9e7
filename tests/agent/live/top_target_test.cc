// SPDX-License-Identifier: Apache-2.0
// The targets of `muster top` in a cluster: words of kubectl, and what it prints.
#include "agent/live/top_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = TopTarget::Kind;

TEST(TopTarget, Texts) {
  EXPECT_EQ((TopTarget{.kind = Kind::kCoordinator, .host = "::1", .port = 29400}.Text()), "[::1]:29400");
  EXPECT_EQ((TopTarget{.kind = Kind::kAgent, .host = "a", .port = 1}.Text()), "http://a:1");
  EXPECT_EQ((TopTarget{.kind = Kind::kPod, .name = "a"}.Text()), "pod/a");
  EXPECT_EQ((TopTarget{.kind = Kind::kTrainJob, .name = "a"}.Text()), "trainjob/a");
  EXPECT_EQ((TopTarget{.kind = Kind::kPyTorchJob, .name = "a"}.Text()), "pytorchjob/a");
  EXPECT_EQ((TopTarget{.kind = Kind::kLocalJob, .name = "a"}.Text()), "a");
}

TEST(TopTarget, Names) {
  for (const char* name : {"a", "digits-node-0-0", "a.b", "A9"}) EXPECT_TRUE(IsJobName(name)) << name;
  for (const char* name : {"", "-n", ".", "..", ".a", "a/b", "a b", "a=b", "a,b", "a\n"}) {
    EXPECT_FALSE(IsJobName(name)) << name;
  }
  EXPECT_FALSE(IsJobName(std::string(254, 'a')));
}

TEST(TopTarget, PodsAreListedByTheLabelsOfTheController) {
  EXPECT_THAT(ListPodsCommand({.kind = Kind::kTrainJob, .name = "digits"}, "team"),
              ElementsAre("kubectl", "get", "pods", "--namespace=team",
                          "--selector=jobset.sigs.k8s.io/jobset-name=digits", HasSubstr("--output=jsonpath={range")));
  EXPECT_THAT(ListPodsCommand({.kind = Kind::kPyTorchJob, .name = "digits"}, ""),
              Contains("--selector=training.kubeflow.org/job-name=digits"));
  EXPECT_THAT(ListPodsCommand({.kind = Kind::kPod, .name = "digits-0"}, ""),
              Contains("--field-selector=metadata.name=digits-0"));
  EXPECT_THAT(ForwardCommand("digits-0", "team"), ElementsAre("kubectl", "port-forward", "--address=127.0.0.1",
                                                              "--namespace=team", "pod/digits-0", ":29480"));
}

TEST(TopTarget, WhatKubectlPrints) {
  EXPECT_THAT(
      ParsePods("digits-node-0-0-x7k2p Running digits-node-0-0\ndigits-data-0 Succeeded \n\nodd line with words\n"
                "-x Running a\n"),
      ElementsAre(TopPod{"digits-node-0-0-x7k2p", "Running", "digits-node-0-0"},
                  TopPod{"digits-data-0", "Succeeded", "digits-data-0"}));
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "a Running\n";
  EXPECT_EQ(ParsePods(many).size(), 4096u);
  const struct {
    const char* line;
    std::optional<int> port;
  } rows[] = {
      {"Forwarding from 127.0.0.1:43210 -> 29480", 43210},
      {"Forwarding from [::1]:43210 -> 29480", 43210},
      {"Forwarding from 127.0.0.1:0 -> 29480", std::nullopt},
      {"Forwarding from 127.0.0.1:99999 -> 29480", std::nullopt},
      {"Forwarding from nowhere", std::nullopt},
      {"Handling connection for 43210", std::nullopt},
      {"", std::nullopt},
  };
  for (const auto& row : rows) EXPECT_EQ(ForwardedPort(row.line), row.port) << row.line;
}

}  // namespace
}  // namespace muster::agent
