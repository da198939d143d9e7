// SPDX-License-Identifier: Apache-2.0
#include "http/proxies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Proxies, TheSchemeDecidesTheVariable) {
  const struct {
    Environment environment;
    const char* url;
    const char* proxy;
  } rows[] = {
      {{}, "http://a/", ""},
      {{{"http_proxy", "http://p:1"}, {"HTTP_PROXY", "http://q:1"}}, "http://a/f", "http://p:1"},
      {{{"HTTP_PROXY", "http://q:1"}}, "http://a/f", "http://q:1"},
      {{{"HTTP_PROXY", "http://q:1"}}, "https://a/f", ""},
      {{{"HTTP_PROXY", "http://q:1"}, {"REQUEST_METHOD", "GET"}}, "http://a/f", ""},
      {{{"http_proxy", "http://q:1"}, {"REQUEST_METHOD", "GET"}}, "http://a/f", "http://q:1"},
      {{{"HTTPS_PROXY", "http://q:1"}}, "https://a", "http://q:1"},
      {{{"https_proxy", ""}, {"HTTPS_PROXY", "http://q:1"}}, "https://a", ""},
      {{{"ALL_PROXY", "socks5h://s:1080"}}, "https://a", "socks5h://s:1080"},
      {{{"ALL_PROXY", "http://r:1"}, {"https_proxy", "http://q:1"}}, "https://a", "http://q:1"},
      // Typical values of users.
      {{{"HTTPS_PROXY", " http://q:1\n"}}, "https://a", "http://q:1"},
      {{{"HTTPS_PROXY", "q:3128"}}, "https://a", "http://q:3128"},
      {{{"HTTPS_PROXY", "q"}}, "https://a", "http://q"},
      {{{"HTTPS_PROXY", "HTTP://q:1/"}}, "https://a", "http://q:1/"},
      {{{"HTTPS_PROXY", "http://u:p%40@q:1"}}, "https://a", "http://u:p%40@q:1"},
      {{{"HTTPS_PROXY", "u:p@q:1"}}, "https://a", "http://u:p@q:1"},
      {{{"HTTPS_PROXY", "http://[::1]:3128"}}, "https://a", "http://[::1]:3128"},
  };
  for (const auto& row : rows) {
    auto proxies = Proxies::Read(row.environment);
    ASSERT_TRUE(proxies.ok()) << proxies.status();
    EXPECT_EQ(proxies->For(row.url), row.proxy) << testing::PrintToString(row.environment.entries());
  }
}

TEST(Proxies, WhatIsNotAProxyIsNamed) {
  const struct {
    const char* value;
    const char* what;
  } rows[] = {
      {"\"http://secret@q:3128\"", "quotes in its value"},
      {"'http://q:3128'", "quotes in its value"},
      {"http://q :3128", "white space"},
      {"http://q:3128 http://r:1", "white space"},
      {"ftp://q:21", "its scheme 'ftp' is none of"},
      {"http://q:port", "its port is not a number"},
      {"http://u:secret@q:70000", "its port is not a number"},
      {"http://", "its host is not a host name or IP address"},
      {"http://u:secret@", "its host is not a host name or IP address"},
  };
  for (const auto& row : rows) {
    for (const char* name : {"http_proxy", "HTTP_PROXY", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"}) {
      auto proxies = Proxies::Read({{name, row.value}});
      EXPECT_EQ(proxies.status().code(), absl::StatusCode::kInvalidArgument) << row.value;
      EXPECT_THAT(std::string(proxies.status().message()),
                  AllOf(HasSubstr(std::string(name) + " is not a proxy: "), HasSubstr(row.what), HasSubstr("unset it"),
                        Not(HasSubstr("secret"))));
    }
  }
}

TEST(Proxies, NoProxyNamesTheHostsAskedDirectly) {
  const struct {
    const char* without;
    const char* url;
    bool direct;
  } rows[] = {
      {"*", "https://a.b/", true},
      {"", "https://a.b/", false},
      {",, ,", "https://a.b/", false},
      {"b.example", "https://b.example/x", true},
      {"b.example", "https://a.b.example/x", true},
      {"b.example", "https://ab.example/x", false},
      {".b.example", "https://b.example/x", true},
      {".b.example", "https://a.b.example/x", true},
      {"*.b.example", "https://a.b.example/x", true},
      {"B.Example", "https://b.EXAMPLE/x", true},
      {"b.example.", "https://b.example/x", true},
      {"b.example", "https://b.example./x", true},
      {"x, b.example", "https://b.example/x", true},
      {"x b.example\n", "https://b.example/x", true},
      {"b.example:443", "https://b.example/x", true},
      {"b.example:443", "https://b.example:8443/x", false},
      {"b.example:8443", "https://a.b.example:8443/x", true},
      {"b.example:80", "http://b.example/x", true},
      {"b.example:port", "http://b.example/x", false},
      {"10.1.2.3", "http://10.1.2.3/x", true},
      {"10.1.2.3:9000", "http://10.1.2.3:9000/x", true},
      {"10.1.2.3:9000", "http://10.1.2.3/x", false},
      {"2.3", "http://10.1.2.3/x", false},
      {"10.0.0.0/8", "http://10.1.2.3:9000/x", true},
      {"10.1.2.3/8", "http://10.200.2.3/x", true},
      {"10.0.0.0/8", "http://11.1.2.3/x", false},
      {"10.0.0.0/0", "http://11.1.2.3/x", true},
      {"10.0.0.0/33", "http://10.0.0.0/x", false},
      {"10.0.0.0/", "http://10.0.0.0/x", false},
      {"10.0.0.0/8", "http://name/x", false},
      {"::1", "http://[::1]:80/x", true},
      {"[::1]", "http://[::1]/x", true},
      {"0:0:0:0:0:0:0:1", "http://[::1]/x", true},
      {"[::1]:8080", "http://[::1]:8080/x", true},
      {"[::1]:8080", "http://[::1]/x", false},
      {"fd00::/8", "http://[fd12::3]:9000/x", true},
      {"[fd00::]/8", "http://[fd12::3]/x", true},
      {"fd00::/8", "http://[fe80::3]/x", false},
      {"fd00::/129", "http://[fd00::]/x", false},
      {"10.0.0.0/8", "http://[::1]/x", false},
  };
  for (const auto& row : rows) {
    auto proxies = Proxies::Read({{"ALL_PROXY", "http://p:1"}, {"NO_PROXY", row.without}});
    ASSERT_TRUE(proxies.ok());
    EXPECT_EQ(proxies->For(row.url), row.direct ? "" : "http://p:1") << row.url << " by " << row.without;
  }
}

TEST(Proxies, TheSchemeOfTheProxyDecidesTls) {
  EXPECT_TRUE(Proxies::Read({{"HTTPS_PROXY", "HTTPS://p:1"}})->by_tls());
  EXPECT_FALSE(Proxies::Read({{"HTTPS_PROXY", "http://p:1"}})->by_tls());
}

}  // namespace
}  // namespace muster::http
