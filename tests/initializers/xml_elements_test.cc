// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/xml_elements.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// "a/b=text a=", or "error: ...".
std::string Read(std::string_view xml) {
  std::vector<std::string> ends;
  Status status = ReadXml(xml, [&ends](std::string_view path, std::string_view text) {
    ends.push_back(fmt::format("{}={}", path, text));
    return absl::OkStatus();
  });
  return status.ok() ? Join(ends, " ") : "error: " + std::string(status.message());
}

TEST(XmlElements, EndOneByOne) {
  const struct {
    std::string_view xml, ends;
  } rows[] = {
      {"<a/>", "a="},
      {"<a>x</a>", "a=x"},
      {"<a><b>1</b><b>2</b></a>", "a/b=1 a/b=2 a="},
      {"<a>one<b>2</b>three</a>", "a/b=2 a=three"},
      {"<a><b><c>x</c></b></a>", "a/b/c=x a/b= a="},
      {"<a x='1'>&lt;&amp;&gt;&quot;&apos;&#x41;&#66;&#233;</a>", "a=<&>\"'ABé"},
      {"<a><![CDATA[<x>&amp;]]></a>", "a=<x>&amp;"},
      {"<!-- c --><?pi?><a>x<!-- c -->y</a>\n", "a=xy"},
      {"\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"UTF-8\"?>\r\n<a>\xc3\xa9</a>", "a=é"},
      {"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\xe9</a>", "a=é"},
      {"<a xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><b>1</b></a>", "a/b=1 a="},
      {"<s:a xmlns:s='urn:x'><s:b>1</s:b><c xmlns=''>2</c></s:a>", "a/b=1 a/c=2 a="},
      {"<a><b xmlns:xsi='urn:i' xsi:type='C'>1</b></a>", "a/b=1 a="},
  };
  for (const auto& row : rows) EXPECT_EQ(Read(row.xml), row.ends) << row.xml;
}

TEST(XmlElements, ThatAreNoneAreRefused) {
  const struct {
    std::string_view xml, error;
  } rows[] = {
      {"", "it is empty"},
      {" \n", "it is empty"},
      {"<a>", "line 1: no element found"},
      {"<a>\n<b></a>", "line 2: mismatched tag"},
      {"<a/><b/>", "line 1: junk after document element"},
      {"<a>\x01</a>", "line 1: not well-formed"},
      {"<a>&#0;</a>", "line 1: reference to invalid character number"},
      {"<a>\xff</a>", "not well-formed"},
      {"<a>&nbsp;</a>", "line 1: undefined entity"},
      {"<x:a/>", "line 1: unbound prefix"},
      {"<?xml version=\"1.0\" encoding=\"klingon\"?><a/>", "unknown encoding"},
      {"{\"error\":\"no\"}", "it is not XML: '{\"error\":\"no\"}'"},
      {"404 page not found\n", "it is not XML: '404 page not found\\x0a'"},
      {"<!DOCTYPE html><html lang=\"en\"><title>Sign in</title>",
       "it is an HTML page: '<!DOCTYPE html><html lang=\"en\"><title>Sign in</title>'; is a proxy, a console or a "
       "login"},
      {"\n<HTML><head></head></HTML>", "it is an HTML page"},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(Read(row.xml), StartsWith("error: ")) << row.xml;
    EXPECT_THAT(Read(row.xml), HasSubstr(row.error)) << row.xml;
  }
}

TEST(XmlElements, KnowNoDtd) {
  const std::string_view error = "it has a document type declaration, which no S3 answer has";
  EXPECT_THAT(Read("<!DOCTYPE a><a/>"), HasSubstr(error));
  EXPECT_THAT(Read("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>"), HasSubstr(error));
  EXPECT_THAT(Read("<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>"), HasSubstr(error));
  EXPECT_THAT(Read("<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>"), HasSubstr(error));
  EXPECT_THAT(Read("<!DOCTYPE l [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;'>]>"
                   "<l>&c;</l>"),
              HasSubstr(error));
}

TEST(XmlElements, AreBounded) {
  auto nested = [](size_t depth) {
    std::string xml;
    for (size_t i = 0; i < depth; ++i) xml += "<a>";
    for (size_t i = 0; i < depth; ++i) xml += "</a>";
    return xml;
  };
  EXPECT_THAT(Read(nested(kDeepestXml)), StartsWith("a/a/a/"));
  EXPECT_THAT(Read(nested(kDeepestXml + 1)), HasSubstr("more than 16 elements are within each other"));
  EXPECT_THAT(Read(nested(100'000)), HasSubstr("more than 16 elements are within each other"));
  auto text = [](size_t length) { return "<a>" + std::string(length, 'x') + "</a>"; };
  EXPECT_EQ(Read(text(kLongestXmlText)).size(), 2 + kLongestXmlText);
  EXPECT_THAT(Read(text(kLongestXmlText + 1)), HasSubstr("line 1: the text of a has more than 65536 bytes"));
  auto name = [](size_t length) { return "<" + std::string(length, 'n') + "/>"; };
  EXPECT_EQ(Read(name(kLongestXmlName)), std::string(kLongestXmlName, 'n') + "=");
  EXPECT_THAT(Read(name(kLongestXmlName + 1)), HasSubstr("an element's name has more than 128 bytes"));
  EXPECT_EQ(Read("<x:a xmlns:x='" + std::string(10'000, 'u') + "'/>"), "a=");
  EXPECT_LT(Read(std::string(10'000, 'x')).size(), 200U);
}

TEST(XmlElements, StopWhereTheReaderSays) {
  int seen = 0;
  Status status = ReadXml("<a><b/>\n<c/><d/></a>", [&seen](std::string_view path, std::string_view) -> Status {
    ++seen;
    if (path == "a/c") return absl::InvalidArgumentError("no c");
    return absl::OkStatus();
  });
  EXPECT_EQ(status.message(), "line 2: no c");
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace muster::initializers
