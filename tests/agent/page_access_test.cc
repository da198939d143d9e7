// SPDX-License-Identifier: Apache-2.0
#include "agent/page_access.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

TEST(PageAccess, TheTokenComesInThreeWays) {
  const std::string token = "a+b/c=";
  struct Row {
    std::string query;
    http::Headers headers;
    bool allowed, gets_cookie;
  };
  for (const Row& row : {
           Row{"", {}, false, false},
           Row{"token=a+b/c=", {}, true, true},
           Row{"token=a%2Bb%2Fc%3D", {}, true, true},
           Row{"open=all&token=a%2Bb%2Fc%3D", {}, true, true},
           Row{"token=", {}, false, false},
           Row{"token=a", {}, false, false},
           Row{"atoken=a%2Bb%2Fc%3D", {}, false, false},
           Row{"", {{"authorization", "Bearer a+b/c="}}, true, false},
           Row{"", {{"authorization", "Basic a+b/c="}}, false, false},
           Row{"", {{"authorization", "Bearer a+b/c=d"}}, false, false},
           Row{"", {{"cookie", "x=1; muster-token=a%2Bb%2Fc%3D; y=2"}}, true, false},
           Row{"", {{"cookie", "muster-token=other"}}, false, false},
       }) {
    const PageAccess access = JudgeAccess({.query = row.query, .headers = row.headers}, token);
    EXPECT_EQ(access.allowed, row.allowed) << row.query;
    EXPECT_EQ(!access.cookie.empty(), row.gets_cookie) << row.query;
    EXPECT_TRUE(JudgeAccess({.query = row.query, .headers = row.headers}, "").allowed);
  }
  EXPECT_EQ(JudgeAccess({.query = "token=a+b/c="}, token).cookie,
            "muster-token=a%2Bb%2Fc%3D; HttpOnly; SameSite=Strict; Path=/");
}

}  // namespace
}  // namespace muster::agent
