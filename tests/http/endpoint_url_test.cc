// SPDX-License-Identifier: Apache-2.0
#include "http/endpoint_url.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::http {
namespace {

using ::testing::HasSubstr;

// "tls host port path", or "error: ...".
std::string Read(std::string_view text) {
  auto url = ParseEndpointUrl(text);
  if (!url.ok()) return "error: " + std::string(url.status().message());
  return fmt::format("{} {} {} {}", url->tls ? "tls" : "plain", url->host, url->port, url->path);
}

TEST(EndpointUrl, IsRead) {
  const struct {
    std::string_view text, parts, again, host;
  } rows[] = {
      {"https://s3.example.com", "tls s3.example.com 0 ", "https://s3.example.com", "s3.example.com"},
      {"HTTPS://S3.Example.com/", "tls s3.example.com 0 ", "https://s3.example.com", "s3.example.com"},
      {"http://minio:9000", "plain minio 9000 ", "http://minio:9000", "minio:9000"},
      {"http://minio.ns.svc.cluster.local:80", "plain minio.ns.svc.cluster.local 0 ",
       "http://minio.ns.svc.cluster.local", "minio.ns.svc.cluster.local"},
      {"https://host:443/", "tls host 0 ", "https://host", "host"},
      {"https://host:80", "tls host 80 ", "https://host:80", "host:80"},
      {"http://host:443", "plain host 443 ", "http://host:443", "host:443"},
      {"https://host/base/of%20it//", "tls host 0 /base/of%20it", "https://host/base/of%20it", "host"},
      {"http://10.0.0.1:9000/", "plain 10.0.0.1 9000 ", "http://10.0.0.1:9000", "10.0.0.1:9000"},
      {"http://[FD00::1]:9000", "plain [fd00::1] 9000 ", "http://[fd00::1]:9000", "[fd00::1]:9000"},
      {"http://[::1]", "plain [::1] 0 ", "http://[::1]", "[::1]"},
      {"http://under_score", "plain under_score 0 ", "http://under_score", "under_score"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Read(row.text), row.parts) << row.text;
    auto url = ParseEndpointUrl(row.text);
    ASSERT_TRUE(url.ok()) << row.text;
    EXPECT_EQ(UrlText(*url), row.again) << row.text;
    EXPECT_EQ(HostHeader(*url), row.host) << row.text;
    EXPECT_EQ(*ParseEndpointUrl(UrlText(*url)), *url) << row.text;
  }
}

TEST(EndpointUrl, ThatIsNoneIsNamed) {
  const struct {
    std::string_view text, error;
  } rows[] = {
      {"", "'' is not an endpoint: it lacks the scheme; write it as https://HOST:PORT"},
      {"minio:9000", "'minio:9000' is not an endpoint: it lacks the scheme"},
      {"s3://bucket", "its scheme is neither http nor https"},
      {"https://", "its host is not a host name or IP address"},
      {"https:///path", "its host is not a host name or IP address"},
      {"https://-a", "its host is not a host name or IP address"},
      {"https://.a", "its host is not a host name or IP address"},
      {"https://a b", "its host is not a host name or IP address"},
      {"https://a\nb", "'https://a\\x0ab' is not an endpoint: its host is not a host name or IP address"},
      {"https://h\xc3\xb6st", "its host is not a host name or IP address"},
      {"https://[fd00::1", "its host is not a host name or IP address"},
      {"https://[::1", "its host is not a host name or IP address"},
      {"https://[g::1]", "its host is not a host name or IP address"},
      {"https://[]", "its host is not a host name or IP address"},
      {"https://fd00::1", "its host is not a host name or IP address"},
      {"https://host:", "its port is not a number from 1 to 65535"},
      {"https://host:0", "its port is not a number"},
      {"https://host:65536", "its port is not a number"},
      {"https://host:+1", "its port is not a number"},
      {"https://host?x=1", "a query or fragment does not belong in it"},
      {"https://host/p#f", "a query or fragment does not belong in it"},
      {"https://host/a b", "its path has characters that must be percent-encoded"},
      {"https://host/a\r\nb", "its path has characters"},
      {"https://user:s3cr3t@host", "'...@host' is not an endpoint: a user or password does not belong in it"},
      {"ftp://user:s3cr3t@host", "'...@host' is not an endpoint: its scheme"},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(Read(row.text), HasSubstr(row.error)) << row.text;
    EXPECT_THAT(Read(row.text), ::testing::Not(HasSubstr("s3cr3t")));
  }
  EXPECT_THAT(Read("https://" + std::string(254, 'a')), HasSubstr("its host is not a host name or IP address"));
  EXPECT_THAT(Read("https://a/" + std::string(3000, 'a')), HasSubstr("it is longer than 2048 bytes"));
  EXPECT_LT(Read("https://a/" + std::string(3000, 'a')).size(), 400U);
}

TEST(EndpointUrl, OfThisMachine) {
  for (const char* host : {"127.0.0.1:80", "127.9.9.9", "localhost", "LOCALHOST:1", "[::1]", "[0:0::1]:2"}) {
    EXPECT_TRUE(IsThisMachine(*ParseEndpointUrl(fmt::format("http://{}", host)))) << host;
  }
  for (const char* host : {"128.0.0.1", "localhost.example.com", "127.example.com", "[::2]", "[::ffff:8.8.8.8]"}) {
    EXPECT_FALSE(IsThisMachine(*ParseEndpointUrl(fmt::format("http://{}", host)))) << host;
  }
}

TEST(Origin, WhoGetsAToken) {
  const struct {
    std::string_view url, origin;
  } rows[] = {
      {"https://hub.example/api/models/a?b=c#d", "https://hub.example"},
      {"HTTPS://Hub.Example:443?x", "https://hub.example"},
      {"http://hub.example:80", "http://hub.example"},
      {"http://hub.example:443/", "http://hub.example:443"},
      {"https://[::1]:9/x", "https://[::1]:9"},
      {"https://hub.example@evil.example/", "none"},
      {"https://hub.example\\@evil.example/", "none"},
      {"https://hub.example?@evil.example/", "https://hub.example"},
      {"https://hub.example#@evil.example/", "https://hub.example"},
      {"https://hub.example\t/", "none"},
      {"file:///etc/passwd", "none"},
      {"/api", "none"},
      {"", "none"},
  };
  for (const auto& row : rows) EXPECT_EQ(OriginOf(row.url).value_or("none"), row.origin) << row.url;
}

TEST(ResolveUrl, AsServersWriteIt) {
  const struct {
    std::string_view base, reference, url;
  } rows[] = {
      {"https://h/a/b?c", "https://x/y", "https://x/y"},
      {"https://h/a/b?c", "//x/y", "https://x/y"},
      {"https://h:1/a/b?c", "/y?z=1", "https://h:1/y?z=1"},
      {"https://h/a/b?c=/d/", "y", "https://h/a/y"},
      {"https://h/a/b", "?d", "https://h/a/b?d"},
      {"https://h", "y", "https://h/y"},
      {"https://h?q=/", "/y", "https://h/y"},
      {"https://h/a", "/y?to=http://z", "https://h/y?to=http://z"},
      {"https://h/a/b", "y?to=http://z", "https://h/a/y?to=http://z"},
  };
  for (const auto& row : rows) EXPECT_EQ(ResolveUrl(row.base, row.reference), row.url) << row.reference;
}

}  // namespace
}  // namespace muster::http
