// SPDX-License-Identifier: Apache-2.0
// Pages, errors and credentials as AWS, MinIO, Ceph's RGW, Garage, moto and others write them.
#include "initializers/aws/s3_answers.h"
#include "initializers/stores/xml_error.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kNamespace = R"( xmlns="http://s3.amazonaws.com/doc/2006-03-01/")";

std::string PageOf(std::string_view inner) {
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult{}>{}</ListBucketResult>",
                     kNamespace, inner);
}
std::string ObjectOf(std::string_view key) {
  return fmt::format("<Contents><Key>{}</Key><Size>1</Size></Contents>", key);
}

// "key size etag class | ... -> token", or "error: ...".
std::string Read(std::string_view xml) {
  auto page = ParseS3Page(xml);
  if (!page.ok()) return "error: " + std::string(page.status().message());
  std::vector<std::string> parts;
  for (const S3Object& object : page->objects) {
    parts.push_back(fmt::format("{} {} {} {}", object.key, object.size, object.etag, object.storage_class));
  }
  return Join(parts, " | ") + (page->next ? " -> " + *page->next : "");
}

TEST(S3Page, OfServersIsRead) {
  const struct {
    std::string_view server, xml, page;
  } rows[] = {
      {"AWS",
       R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix>d/</Prefix><NextContinuationToken>1uYx8Wl/QQ+p==</NextContinuationToken><KeyCount>2</KeyCount><MaxKeys>2</MaxKeys><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><Contents><Key>d/a+b%2Bc%26</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified><ETag>&quot;fba9dede5f27731c9771645a39863328&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType><Size>434234</Size><StorageClass>STANDARD</StorageClass></Contents><Contents><Key>d/big%C3%A9</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified><ETag>&quot;9b2cf535f27731c974343645a3985328-3&quot;</ETag><Size>53687091200000</Size><StorageClass>DEEP_ARCHIVE</StorageClass></Contents></ListBucketResult>)",
       "d/a b+c& 434234 \"fba9dede5f27731c9771645a39863328\" STANDARD | "
       "d/bigé 53687091200000 \"9b2cf535f27731c974343645a3985328-3\" DEEP_ARCHIVE -> 1uYx8Wl/QQ+p=="},
      {"MinIO: character references, EncodingType last, owners",
       R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bench</Name><Prefix></Prefix><KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys><Delimiter></Delimiter><IsTruncated>false</IsTruncated><Contents><Key>a%20b%2Fc</Key><LastModified>2026-02-12T10:00:00.000Z</LastModified><ETag>&#34;5d41402abc4b2a76b9719d911017c592&#34;</ETag><Size>5</Size><Owner><ID></ID><DisplayName></DisplayName></Owner><StorageClass>STANDARD</StorageClass></Contents><EncodingType>url</EncodingType></ListBucketResult>)",
       "a b/c 5 \"5d41402abc4b2a76b9719d911017c592\" STANDARD"},
      {"moto: the token last",
       R"(<?xml version="1.0" encoding="utf-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>true</IsTruncated><Contents><Key>a</Key><LastModified>2026-11-22T01:44:07.000Z</LastModified><ETag>"d41d8cd98f00b204e9800998ecf8427e"</ETag><Size>0</Size><StorageClass>STANDARD</StorageClass></Contents><Contents><Key>d/%26%3C%27e</Key><LastModified>2026-11-22T01:44:07.000Z</LastModified><ETag>"d41d8cd98f00b204e9800998ecf8427e"</ETag><Size>0</Size><StorageClass>STANDARD</StorageClass></Contents><Name>bench</Name><Prefix/><MaxKeys>2</MaxKeys><EncodingType>url</EncodingType><KeyCount>2</KeyCount><NextContinuationToken>76ca4508be72b785d47d3e447e39bc2b</NextContinuationToken></ListBucketResult>)",
       "a 0 \"d41d8cd98f00b204e9800998ecf8427e\" STANDARD | d/&<'e 0 \"d41d8cd98f00b204e9800998ecf8427e\" STANDARD -> "
       "76ca4508be72b785d47d3e447e39bc2b"},
      {"moto, not asked to encode",
       R"(<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false</IsTruncated><Contents><Key>a b+c</Key><Size>0</Size></Contents><Contents><Key>d/&amp;&lt;'e</Key><Size>0</Size></Contents><Contents><Key>100%41</Key><Size>0</Size></Contents><Contents><Key>dir/</Key><Size>0</Size></Contents></ListBucketResult>)",
       "a b+c 0   | d/&<'e 0   | 100%41 0   | dir/ 0  "},
      {"RGW: '/' encoded too, the last key for a token",
       R"(<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix></Prefix><MaxKeys>1</MaxKeys><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><Contents><Key>a%2F%2Fb</Key><LastModified>2026-11-20T10:00:00.000Z</LastModified><ETag>&quot;x&quot;</ETag><Size>3</Size><StorageClass>STANDARD</StorageClass><Owner><ID>u</ID><DisplayName>U</DisplayName></Owner><Type>Normal</Type></Contents><NextContinuationToken>a//b</NextContinuationToken><KeyCount>1</KeyCount></ListBucketResult>)",
       "a//b 3 \"x\" STANDARD -> a//b"},
      {"Garage: odd keys, a token that is not to be decoded",
       R"(<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bench</Name><Prefix/><MaxKeys>2</MaxKeys><EncodingType>url</EncodingType><NextContinuationToken>]Li4vZA==%2B</NextContinuationToken><KeyCount>2</KeyCount><IsTruncated>true</IsTruncated><Contents><Key>..%2Fd</Key><LastModified>2026-11-20T10:00:00.000Z</LastModified><ETag>"e"</ETag><Size>2</Size><StorageClass>STANDARD</StorageClass></Contents><Contents><Key>.%2Fc</Key><ETag>"f"</ETag><Size>0</Size></Contents></ListBucketResult>)",
       "../d 2 \"e\" STANDARD | ./c 0 \"f\"  -> ]Li4vZA==%2B"},
      {"a static file: no declaration, no namespace, blanks, bare ETags",
       "<ListBucketResult>\n <IsTruncated> False </IsTruncated>\n <Contents>\n  <Key>a</Key>\n  <ETag>65f-80</ETag>\n"
       "  <Size> 7\n</Size>\n </Contents>\n</ListBucketResult>\n",
       "a 7 \"65f-80\" "},
      {"a prefix for the namespace",
       R"(<s3:ListBucketResult xmlns:s3="http://s3.amazonaws.com/doc/2006-03-01/"><s3:Contents><s3:Key>a</s3:Key><s3:Size>1</s3:Size></s3:Contents></s3:ListBucketResult>)",
       "a 1  "},
      {"nothing", "<ListBucketResult/>", ""},
      {"a token on the last page",
       "<ListBucketResult><IsTruncated>false</IsTruncated><NextContinuationToken>x</NextContinuationToken>"
       "</ListBucketResult>",
       ""},
      {"folders of a delimiter, elements yet to come",
       "<ListBucketResult><CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes><Contents><Key>a</Key><Size>1</Size>"
       "<RestoreStatus><IsRestoreInProgress>false</IsRestoreInProgress></RestoreStatus><Future><Key>z</Key></Future>"
       "</Contents></ListBucketResult>",
       "a 1  "},
      {"a weak ETag",
       "<ListBucketResult><Contents><Key>a</Key><Size>1</Size><ETag>W/\"x\"</ETag></Contents></ListBucketResult>",
       "a 1 W/\"x\" "},
  };
  for (const auto& row : rows) EXPECT_EQ(Read(row.xml), row.page) << row.server;
}

TEST(S3Page, KeysStandAsTheyAre) {
  EXPECT_EQ(Read(PageOf(ObjectOf(" a \n b "))), " a \n b  1  ");
  EXPECT_EQ(ParseS3Page(PageOf("<EncodingType>url</EncodingType>" + ObjectOf("a%00%0Ab")))->objects[0].key,
            std::string("a\0\nb", 4));
  EXPECT_EQ(Read(PageOf("<EncodingType>url</EncodingType>" + ObjectOf("%e3%81%82%zz%"))), "あ%zz% 1  ");
  EXPECT_EQ(Read(PageOf("<EncodingType>none</EncodingType>" + ObjectOf("a+b%20"))), "a+b%20 1  ");
}

TEST(S3Page, ThatIsNoneIsRefused) {
  const struct {
    std::string xml;
    std::string_view error;
  } rows[] = {
      {"", "the list of objects cannot be read: it is empty"},
      {"<!DOCTYPE html><html><body>Sign in</body></html>", "the list of objects cannot be read: it is an HTML page"},
      {"<ListBucketResult><Contents><Key>a</Key>", "the list of objects cannot be read: line 1: no element found"},
      {"<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>",
       "it is a ListAllMyBucketsResult, not a ListBucketResult; check the endpoint"},
      {"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
       "instead of a list of objects came the error AccessDenied: Access Denied"},
      {PageOf("<Contents><Size>1</Size></Contents>"), "line 2: an object has no Key"},
      {PageOf("<Contents><Key></Key><Size>1</Size></Contents>"), "an object has no Key"},
      {PageOf("<Contents><Key>a</Key></Contents>"), "'a' has no Size"},
      {PageOf(ObjectOf("a") + "<Contents><Key>b</Key></Contents>"), "'b' has no Size"},
      {PageOf("<Contents><Key>a\nb</Key><Size>-1</Size></Contents>"), "the size of 'a\\x0ab' is '-1'"},
      {PageOf("<Contents><Key>a</Key><Size>99999999999999999999</Size></Contents>"), "the size of 'a' is '9999"},
      {PageOf("<Contents><Key>a</Key><Size>1.5</Size></Contents>"), "is '1.5'"},
      {PageOf("<Contents><Key>a</Key><Size/></Contents>"), "the size of 'a' is ''"},
      {PageOf("<IsTruncated>true</IsTruncated>" + ObjectOf("a")),
       "it says that there is more (IsTruncated) without saying where (NextContinuationToken)"},
      {PageOf("<IsTruncated>true</IsTruncated><NextContinuationToken/>"), "without saying where"},
      {PageOf("<IsTruncated>true</IsTruncated><NextMarker>a</NextMarker>"), "without saying where"},
      {PageOf("<IsTruncated>maybe</IsTruncated>"), "IsTruncated is 'maybe', neither true nor false"},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(Read(row.xml), StartsWith("error: ")) << row.xml;
    EXPECT_THAT(Read(row.xml), HasSubstr(row.error)) << row.xml;
    EXPECT_EQ(ParseS3Page(row.xml).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(S3Page, CutAnywhereIsAnError) {
  const std::string page = PageOf("<EncodingType>url</EncodingType>" + ObjectOf("a%20b") + ObjectOf("c"));
  ASSERT_EQ(Read(page), "a b 1   | c 1  ");
  for (size_t length = 0; length < page.size(); ++length) {
    EXPECT_THAT(Read(std::string_view(page).substr(0, length)), StartsWith("error: ")) << length;
  }
}

TEST(PageInPlace, IsToldFromAnObject) {
  using Headers = std::vector<std::pair<std::string, std::string>>;
  const std::pair<std::string, std::string> page = {"content-type", "text/html; charset=utf-8"},
                                            file = {"content-type", "application/octet-stream"},
                                            nginx = {"etag", "\"5f3e-264\""},
                                            md5 = {"etag", "\"0cc175b9c0f1b6a831c399e269772661\""},
                                            parts = {"etag", "\"0cc175b9c0f1b6a831c399e269772661-2\""},
                                            other = {"etag", "\"0cc175b9c0f1b6a831c399e269772661x\""},
                                            id = {"x-amz-request-id", "1"}, google = {"x-goog-hash", "crc32c=x"};
  const struct {
    Headers headers;
    std::string key;
    bool object;
  } rows[] = {
      {{nginx, file}, "a/b", true},         {{file}, "a/b", false},
      {{nginx, page}, "a/b", false},        {{nginx, page}, "a.d/b", false},
      {{nginx, page}, "b.bin", false},      {{nginx, page}, "b.html", true},
      {{nginx, page, id}, "a/b", true},     {{nginx, page, google}, "b.bin", true},
      {{md5, page}, "a/b", true},           {{parts, page}, "a/b", true},
      {{other, page}, "a/b", false},        {{md5, page}, "b.bin", false},
      {{{"etag", "\""}, page}, "b", false},
  };
  for (const auto& row : rows) {
    http::ResponseHead head;
    head.status = 200;
    head.headers = row.headers;
    EXPECT_EQ(!PageInPlace(head, row.key), row.object) << row.key << ' ' << row.headers[0].second;
  }
}

TEST(XmlError, IsRead) {
  const struct {
    std::string_view xml;
    XmlError error;
  } rows[] = {
      {R"(<?xml version="1.0" encoding="utf-8"?>
<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message><BucketName>nobench</BucketName><RequestId>b8lo</RequestId><HostId>9G+c=</HostId></Error>)",
       {.code = "NoSuchBucket", .message = "The specified bucket does not exist"}},
      {"<Error><Code>PermanentRedirect</Code><Message>The bucket you are attempting to access must be addressed using "
       "the specified endpoint.</Message><Endpoint>b.s3.eu-west-1.amazonaws.com</Endpoint><Bucket>b</Bucket></Error>",
       {.code = "PermanentRedirect",
        .message = "The bucket you are attempting to access must be addressed using the specified endpoint.",
        .endpoint = "b.s3.eu-west-1.amazonaws.com"}},
      {"<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region 'us-east-1' is wrong; expecting "
       "'eu-west-1'</Message><Region>eu-west-1</Region></Error>",
       {.code = "AuthorizationHeaderMalformed",
        .message = "the region 'us-east-1' is wrong; expecting 'eu-west-1'",
        .region = "eu-west-1"}},
      {"<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>NoSuchKey</Code><Message></Message><RequestId>tx0"
       "</RequestId></Error>",
       {.code = "NoSuchKey"}},
      {"<Error xmlns=\"urn:any\"><Code> SlowDown </Code><Message/></Error>", {.code = "SlowDown"}},
      {"<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type><Code>"
       "ExpiredTokenException</Code><Message>Token expired</Message></Error><RequestId>r</RequestId></ErrorResponse>",
       {.code = "ExpiredTokenException", .message = "Token expired"}},
      {"<Error><Code>InternalError</Code><Message>We enc", {.code = "InternalError"}},
      {"<Error><Code>X</Code><Message>a\nb\tc\xc2\x80</Message></Error>", {.code = "X", .message = "a b c\xc2\x80"}},
      // Text that cannot be part of a host name is ignored.
      {"<Error><Code>X</Code><Region>evil.example/</Region><Endpoint>user@host</Endpoint></Error>", {.code = "X"}},
      {"<Error><Code>X</Code><Region>a\r\nb</Region><Endpoint>127.0.0.1:9000</Endpoint></Error>",
       {.code = "X", .endpoint = "127.0.0.1:9000"}},
      {"", {}},
      {"<html>Forbidden</html>", {}},
      {"Service Unavailable", {}},
      {"<ListBucketResult><Code>X</Code></ListBucketResult>", {}},
      {"<!DOCTYPE Error><Error><Code>X</Code></Error>", {}},
  };
  for (const auto& row : rows) EXPECT_EQ(ParseXmlError(row.xml), row.error) << row.xml;
}

TEST(XmlError, IsBounded) {
  const XmlError error =
      ParseXmlError("<Error><Code>" + std::string(5000, 'c') + "</Code><Message>" + std::string(1023, 'm') +
                    "é</Message><Region>" + std::string(300, 'r') + "</Region></Error>");
  EXPECT_EQ(error.code.size(), 128U);
  EXPECT_EQ(error.message, std::string(1023, 'm'));
  EXPECT_EQ(error.region, "");
}

std::string StsOf(std::string_view action, std::string_view inner) {
  return fmt::format(
      "<{0}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{0}Result><Credentials>{1}</Credentials>"
      "<AssumedRoleUser><AssumedRoleId>ARO123EXAMPLE123:s</AssumedRoleId><Arn>arn:aws:sts::123456789012:assumed-role/r/"
      "s"
      "</Arn></AssumedRoleUser><PackedPolicySize>6</PackedPolicySize></{0}Result><ResponseMetadata><RequestId>13Ok"
      "</RequestId></ResponseMetadata></{0}Response>",
      action, inner);
}
constexpr std::string_view kGood =
    "<AccessKeyId>ASIARZPUZDIKLKFKJ45A</AccessKeyId><SecretAccessKey>sUzkTx5GB+tl74/x</SecretAccessKey><SessionToken>\n"
    "FQoGZXIvYXdzEBYaDhm+a8=</SessionToken><Expiration>2026-11-22T02:44:07.363437Z</Expiration>";

TEST(StsAnswer, IsRead) {
  for (std::string_view action : {"AssumeRole", "AssumeRoleWithWebIdentity"}) {
    auto credentials = ParseStsAnswer(StsOf(action, kGood));
    ASSERT_TRUE(credentials.ok()) << credentials.status();
    EXPECT_EQ(credentials->access_key, "ASIARZPUZDIKLKFKJ45A");
    EXPECT_EQ(credentials->secret_key, "sUzkTx5GB+tl74/x");
    EXPECT_EQ(credentials->session_token, "FQoGZXIvYXdzEBYaDhm+a8=");
    EXPECT_EQ(credentials->expires_unix, 1795315447);
  }
}

TEST(StsAnswer, ThatIsNoneIsRefused) {
  auto without = [](std::string_view name) {
    std::string text(kGood);
    const size_t start = text.find(fmt::format("<{}>", name));
    const std::string end = fmt::format("</{}>", name);
    text.erase(start, text.find(end) + end.size() - start);
    return StsOf("AssumeRole", text);
  };
  const struct {
    std::string xml;
    std::string_view error;
  } rows[] = {
      {"", "the answer of STS cannot be read: it is empty"},
      {"<html>", "the answer of STS cannot be read: it is an HTML page"},
      {"<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized to perform "
       "sts:AssumeRoleWithWebIdentity</Message></Error></ErrorResponse>",
       "STS answers AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity"},
      {without("AccessKeyId"), "the answer of STS has no AccessKeyId"},
      {without("SecretAccessKey"), "the answer of STS has no SecretAccessKey"},
      {without("SessionToken"), "the answer of STS has no SessionToken"},
      {without("Expiration"), "the Expiration that STS gave: '' is not a time"},
      {StsOf("AssumeRole",
             "<AccessKeyId>a</AccessKeyId><SecretAccessKey>s3cr3t</SecretAccessKey>"
             "<SessionToken>a&#13;&#10;X: y</SessionToken>"),
       "the SessionToken that STS gave has a blank or a character that is not printable ASCII"},
  };
  for (const auto& row : rows) {
    auto credentials = ParseStsAnswer(row.xml);
    ASSERT_FALSE(credentials.ok()) << row.xml;
    EXPECT_THAT(std::string(credentials.status().message()), HasSubstr(row.error));
    EXPECT_THAT(std::string(credentials.status().message()), ::testing::Not(HasSubstr("s3cr3t")));
  }
}

}  // namespace
}  // namespace muster::initializers
