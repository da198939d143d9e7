// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

TEST(WriteYaml, LooksAsKubectlPrintsIt) {
  const std::string text = R"(apiVersion: v1
empty: {}
kind: Pod
list:
- a
- 5
- b: 1
  c:
  - d
  - - e
    - f
- []
metadata:
  labels:
    a.b/c: "true"
  name: x
none: null
script: |
  if true; then
    echo
  fi
tail: |-
  a

  b
)";
  EXPECT_EQ(WriteYaml(YamlOf(text)), text);
}

TEST(WriteYaml, TextsComeBack) {
  for (const std::string& text : {
           std::string(),           std::string("a"),          std::string("a b"),        std::string("true"),
           std::string("y"),        std::string("~"),          std::string("null"),       std::string("5"),
           std::string("0400"),     std::string("1e3"),        std::string(".5"),         std::string("-"),
           std::string("- a"),      std::string("-a"),         std::string("--- a"),      std::string("..."),
           std::string("a: b"),     std::string("a:"),         std::string(":a"),         std::string("a #b"),
           std::string("#a"),       std::string("a#b"),        std::string(" a"),         std::string("a "),
           std::string("{a}"),      std::string("[a]"),        std::string("*a"),         std::string("&a"),
           std::string("!a"),       std::string("|"),          std::string(">"),          std::string("'a'"),
           std::string("\"a\""),    std::string("%a"),         std::string("@a"),         std::string("`a"),
           std::string("<<"),       std::string("="),          std::string("?"),          std::string("? a"),
           std::string("12:30"),    std::string("2026-01-02"), std::string("a\nb"),       std::string("a\nb\n"),
           std::string("a\n\nb\n"), std::string("a\n\n"),      std::string("\na"),        std::string("\n"),
           std::string(" a\nb"),    std::string("a \nb"),      std::string("a\n  b\n"),   std::string("a\n\tb"),
           std::string("\ta\nb"),   std::string("a\r\nb"),     std::string("a\tb"),       std::string("ä"),
           std::string("ä\nb"),     std::string("a\\b"),       std::string("\x01\x7f"),   std::string("a\0b", 3),
           std::string(".inf"),     std::string("#\n"),        std::string("# a\n# b\n"), std::string("---\na"),
       }) {
    const Json object = {{"x", text}, {"l", {text, {{"k", text}}}}, {text, 1}};
    const std::string written = WriteYaml(object);
    EXPECT_EQ(YamlOf(written), object) << written;
  }
}

TEST(WriteYaml, NumbersComeBack) {
  const Json object = {{"a", 0}, {"b", -5}, {"c", 18446744073709551615u}, {"d", 1.5}, {"e", 1e300}, {"f", 1e-7}};
  EXPECT_EQ(YamlOf(WriteYaml(object)), object);
}

TEST(WriteYaml, LongKeysComeBack) {
  for (size_t size : {999, 1000, 1001, 1030, 5000}) {
    const std::string key(size, 'k'), quoted = key + ": ";
    const Json object = {{"l", {{{key, 1}, {quoted, {{quoted, {1, 2}}}}}}}, {key, {{quoted, "a\nb"}}}};
    EXPECT_EQ(YamlOf(WriteYaml(object)), object) << size;
  }
}

TEST(WriteYaml, WritesEmptyObjectsAndSingleValues) {
  EXPECT_EQ(WriteYaml(Json::object()), "{}\n");
  EXPECT_EQ(WriteYaml(Json::array()), "[]\n");
  EXPECT_EQ(WriteYaml(Json()), "null\n");
  EXPECT_EQ(WriteYaml(Json("a: b")), "\"a: b\"\n");
  EXPECT_EQ(WriteYaml(Json("\xff")), "\"\xef\xbf\xbd\"\n");
}

}  // namespace
}  // namespace muster::controller
