// SPDX-License-Identifier: Apache-2.0
// Kubernetes' service links in variables from which Muster or a framework reads a port.
#include "agent/flags/service_links.h"

#include <gmock/gmock.h>

#include "agent/flags/rsh_place.h"
#include "agent/flags/torchrun_flag_table.h"
#include "base/text.h"
#include "tests/agent/parse_run.h"

namespace muster::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kLink[] = "tcp://10.0.0.1:80";

Environment AllLinks() {
  Environment pod = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"REDIS_PORT", kLink}};
  for (std::string_view name : kPortVariables) pod.Set(name, kLink);
  return pod;
}

TEST(ServiceLinks, OfEveryPortThatAFlagReads) {
  for (const Flag& flag : FlagTable()) {
    if (flag.variable.ends_with("_PORT")) {
      EXPECT_THAT(kPortVariables, Contains(flag.variable));
    }
    for (std::string_view part : {"_SERVICE_HOST", "_SERVICE_PORT", "_TCP_ADDR", "_TCP_PORT", "_TCP_PROTO"}) {
      EXPECT_FALSE(flag.variable.ends_with(part)) << flag.variable << ": a Service could set it with any value";
    }
  }
}

TEST(ServiceLinks, AreToldAndTakenAway) {
  const Environment pod = {{"MUSTER_HTTP_PORT", kLink}, {"REDIS_PORT", kLink}, {"MASTER_PORT", "29500"}};
  const auto links = LinksAmongSettings(pod);
  ASSERT_EQ(links.size(), 1U);
  EXPECT_THAT(Describe(links.front()),
              testing::AllOf(HasSubstr("MUSTER_HTTP_PORT=tcp://10.0.0.1:80"), HasSubstr("Service muster-http"),
                             HasSubstr("enableServiceLinks: false")));
  EXPECT_THAT(WithoutLinks(pod).entries(), ElementsAre("REDIS_PORT=tcp://10.0.0.1:80", "MASTER_PORT=29500"));
  EXPECT_THAT(WithoutLinks(AllLinks()).entries(),
              ElementsAre("KUBERNETES_SERVICE_HOST=10.0.0.1", "REDIS_PORT=tcp://10.0.0.1:80"));
}

TEST(ServiceLinks, AreNoSettings) {
  const Environment pod = AllLinks();
  EXPECT_TRUE(Good({}, pod).job.standalone) << "no port is chosen";
  EXPECT_EQ(Good({"--nnodes=2"}, pod).job.endpoint.port, 29500);
  EXPECT_EQ(Good({}, pod).http.port, Good({}, {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}).http.port);
  EXPECT_EQ(ReadRshPlace(pod)->port, kRshPort);
  for (const char* wire : {"jax", "xgboost"}) {
    Environment job = pod;
    job.Set("PET_NNODES", "2");
    job.Set("PET_NODE_RANK", "0");
    job.Set("PET_MASTER_ADDR", "n0");
    auto run = Parse({fmt::format("--wire={}", wire), "--", "true"}, job, CalledAs::kExec);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->options.job.endpoint.port, 29400) << wire;
  }
  const auto overruled = Parse({"--http-port=9000", "x.py"}, pod);
  ASSERT_TRUE(overruled.ok()) << overruled.status();
  EXPECT_THAT(overruled->overruled, testing::IsEmpty());
}

}  // namespace
}  // namespace muster::agent
