// SPDX-License-Identifier: Apache-2.0
// The variables of a process as a value.
#include "base/environment.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

TEST(Environment, LooksUp) {
  const Environment environment =
      Environment::Of({"A=1", "AB=2", "EMPTY=", "BLANK= \t", "SPACED= x y ", "A=3", "odd", "E=a=b"});
  struct {
    const char* name;
    std::optional<std::string> as_it_is, not_blank;
  } const rows[] = {{"A", "1", "1"},
                    {"AB", "2", "2"},
                    {"EMPTY", "", std::nullopt},
                    {"BLANK", " \t", std::nullopt},
                    {"SPACED", " x y ", "x y"},
                    {"E", "a=b", "a=b"},
                    {"odd", std::nullopt, std::nullopt},
                    {"B", std::nullopt, std::nullopt},
                    {"", std::nullopt, std::nullopt}};
  for (const auto& row : rows) {
    EXPECT_EQ(environment.Get(row.name), row.as_it_is) << row.name;
    EXPECT_EQ(environment.NonBlank(row.name), row.not_blank) << row.name;
  }
  const auto found = environment.FirstOf("NONE EMPTY BLANK SPACED A");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->name + "=" + found->value, "SPACED=x y");
  EXPECT_FALSE(environment.FirstOf("NONE EMPTY").has_value());
  EXPECT_FALSE(environment.FirstOf("").has_value());
}

TEST(Environment, ALinkToAServiceIsNoSetting) {
  struct {
    const char *variable, *value, *service;  // empty service: no link
  } const rows[] = {{"MUSTER_HTTP_PORT", "tcp://10.0.0.1:80", "muster-http"},
                    {"MASTER_PORT", "udp://10.0.0.1:29500", "master"},
                    {"A_PORT", "sctp://[fd00::1]:1", "a"},
                    {"A_PORT", "tcp://10.0.0.1:65536", ""},
                    {"A_PORT", "tcp://10.0.0.1:0", ""},
                    {"A_PORT", "tcp://10.0.0.1:", ""},
                    {"A_PORT", "tcp://10.0.0.1", ""},
                    {"A_PORT", "tcp://host:80", ""},  // a wrong setting: links have numeric addresses
                    {"A_PORT", "tcp://[10.0.0.1]:80", ""},
                    {"A_PORT", "tcp://:80", ""},
                    {"A_PORT", "http://10.0.0.1:80", ""},
                    {"A_PORT", "://10.0.0.1:80", ""},
                    {"A_PORT", "10.0.0.1:80", ""},
                    {"A_PORT", "80", ""},
                    {"A_PORT", "", ""},
                    {"_PORT", "tcp://10.0.0.1:80", ""},
                    {"PORT", "tcp://10.0.0.1:80", ""},
                    {"A_URL", "tcp://10.0.0.1:80", ""}};
  for (const auto& row : rows) {
    const auto link = ReadServiceLink(row.variable, row.value);
    EXPECT_EQ(link ? link->service : "", row.service) << row.variable << "=" << row.value;
    const Environment environment = {{row.variable, row.value}};
    EXPECT_EQ(environment.Get(row.variable).has_value(), !link) << row.variable << "=" << row.value;
  }
}

TEST(Environment, IsChanged) {
  Environment environment = Environment::Of({"A=1", "odd", "A=3", "AB=2"});
  environment.Set("A", "4");
  EXPECT_THAT(environment.entries(), ElementsAre("odd", "AB=2", "A=4"));
  environment.Unset("AB");
  EXPECT_THAT(environment.entries(), ElementsAre("odd", "A=4"));
}

TEST(Environment, OfThisProcess) {
  setenv("MUSTER_TEST_VARIABLE", "here", 1);
  const Environment environment = Environment::OfProcess();
  unsetenv("MUSTER_TEST_VARIABLE");
  EXPECT_EQ(environment.Get("MUSTER_TEST_VARIABLE"), "here");
  EXPECT_THAT(environment.entries(), Contains("MUSTER_TEST_VARIABLE=here"));
  EXPECT_EQ(Environment::OfProcess().Get("MUSTER_TEST_VARIABLE"), std::nullopt);
}

}  // namespace
}  // namespace muster
