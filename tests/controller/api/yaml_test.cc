// SPDX-License-Identifier: Apache-2.0
#include "controller/api/yaml.h"

#include "base/text.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

std::string Why(std::string_view text, size_t most_nodes = 1'000'000) {
  auto documents = ReadYaml(text, most_nodes);
  return documents.ok() ? "it was read" : std::string(Message(documents.status()));
}

TEST(Yaml, ScalarsAreReadAsKubectlReadsThem) {
  const struct {
    std::string_view yaml, json;
  } rows[] = {
      {"text", "\"text\""},
      {"", "null"},
      {"~", "null"},
      {"null", "null"},
      {"NULL", "null"},
      {"nUll", "\"nUll\""},
      {"true", "true"},
      {"TRUE", "true"},
      {"yes", "true"},
      {"on", "true"},
      {"y", "true"},
      {"False", "false"},
      {"No", "false"},
      {"OFF", "false"},
      {"n", "false"},
      {"yEs", "\"yEs\""},
      {"\"yes\"", "\"yes\""},
      {"'5'", "\"5\""},
      {"5", "5"},
      {"-5", "-5"},
      {"+5", "5"},
      {"0", "0"},
      {"0400", "256"},
      {"0o400", "256"},
      {"-0400", "-256"},
      {"0x1F", "31"},
      {"0b101", "5"},
      {"1_000", "1000"},
      {"08", "8"},
      {"0x", "\"0x\""},
      {"0xg", "\"0xg\""},
      {"9223372036854775807", "9223372036854775807"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"18446744073709551615", "18446744073709551615"},
      {"18446744073709551616", "1.8446744073709552e+19"},
      {"1.5", "1.5"},
      {".5", "0.5"},
      {"-.5", "-0.5"},
      {"1.", "1"},
      {"1e3", "1000"},
      {"1E-3", "0.001"},
      {"2.50", "2.5"},
      {"1e999", "\"1e999\""},
      {"1e", "\"1e\""},
      {".", "\".\""},
      {"-", "[null]"},
      {"--", "\"--\""},
      {"1.2.3", "\"1.2.3\""},
      {"500m", "\"500m\""},
      {"16Gi", "\"16Gi\""},
      {"12:30:45", "\"12:30:45\""},
      {"2026-01-02", "\"2026-01-02\""},
      {"2026-01-02T03:04:05Z", "\"2026-01-02T03:04:05Z\""},
      {"!!str 5", "\"5\""},
      {"! 5", "\"5\""},
      {"!!int \"5\"", "5"},
      {"!!float 5", "5"},
      {"!!bool yes", "true"},
      {"!!null \"\"", "null"},
      {"!!str", "\"\""},
      {"!!timestamp 2026-01-02", "\"2026-01-02\""},
      {"!!map {}", "{}"},
      {"!!seq []", "[]"},
      {"|\n  a\n  b\n", "\"a\\nb\\n\""},
      {"|+\n  a\n\n", "\"a\\n\\n\""},
      {"|\n  a\n  ", "\"a\\n\""},
      {">-\n  5\n", "\"5\""},
      {"\"\\u00e4\\n\\x41\"", "\"ä\\nA\""},
      {"[a, {b: c}, 5]", "[\"a\", {\"b\": \"c\"}, 5]"},
  };
  for (const auto& row : rows) {
    const Json object = YamlOf(fmt::format("x: {}", row.yaml == "-" ? "\n-" : row.yaml));
    EXPECT_EQ(WriteJson(object["x"]), WriteJson(*ReadJson(row.json, 9))) << row.yaml;
  }
}

TEST(Yaml, KeysAreTexts) {
  EXPECT_EQ(YamlOf("{1: a, on: b, 1.5: c, 'x y': d, 0x10: e}"),
            (Json{{"1", "a"}, {"true", "b"}, {"1.5", "c"}, {"x y", "d"}, {"16", "e"}}));
}

TEST(Yaml, DocumentsAndListsAreReadOneByOne) {
  const struct {
    std::string_view text;
    size_t count;
  } rows[] = {
      {"", 0},
      {"# nothing\n", 0},
      {"---\n---\n", 0},
      {"null\n", 0},
      {"a: 1\n", 1},
      {"---\na: 1\n---\n# none\n---\nb: 1\n...\n", 2},
      {"{\"a\": 1}", 1},
      {"{\n\t\"a\": \"\\ud83d\\ude00\"}", 1},  // JSON that is not YAML
      {"apiVersion: v1\nkind: List\nitems: [{a: 1}, {b: 2}]\n---\nc: 3\n", 3},
      {"apiVersion: v1\nkind: List\nitems: []\n", 0},
      {"apiVersion: v2\nkind: List\nitems: [{a: 1}]\n", 1},
      {"apiVersion: v1\nkind: List\nitems: 5\n", 1},
  };
  for (const auto& row : rows) {
    const auto documents = ReadYaml(row.text);
    ASSERT_TRUE(documents.ok()) << row.text << documents.status();
    EXPECT_EQ(documents->size(), row.count) << row.text;
  }
  EXPECT_EQ((*ReadYaml("{\n\t\"a\": \"\\ud83d\\ude00\"}"))[0].object["a"], "😀");
}

TEST(Yaml, AnchorsAndMergeKeys) {
  const struct {
    std::string_view yaml, expected;
  } rows[] = {
      {"a: &x {p: 1}\nb: *x", "{a: {p: 1}, b: {p: 1}}"},
      {"a: &x word\nb: [*x, *x]", "{a: word, b: [word, word]}"},
      {"a: &x word\n*x : 1", "{a: word, word: 1}"},
      {"a: &x\nb: *x", "{a: null, b: null}"},
      {"a: &x [1, &y 2]\nb: *y\nc: *x", "{a: [1, 2], b: 2, c: [1, 2]}"},
      {"a: &x 1\nb: &x 2\nc: *x", "{a: 1, b: 2, c: 2}"},
      {"a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}", "{a: {p: 1, q: 2}, b: {p: 1, q: 3}}"},
      {"a: &x {p: 1}\nb: {p: 2, <<: *x}", "{a: {p: 1}, b: {p: 2}}"},
      {"a: &x {p: 1}\nb: &y {p: 2, q: 2}\nc: {<<: [*x, *y]}", "{a: {p: 1}, b: {p: 2, q: 2}, c: {p: 1, q: 2}}"},
      {"b: {<<: {p: 1}, q: 1}", "{b: {p: 1, q: 1}}"},
      {"b: {\"<<\": 1}", "{b: {'<<': 1}}"},
  };
  for (const auto& row : rows) EXPECT_EQ(YamlOf(row.yaml), YamlOf(row.expected)) << row.yaml;
}

// yaml-cpp would read these blocks as empty, and refuse their texts.
TEST(Yaml, BlocksBehindAnchorsAndTagsInLists) {
  const std::string text = R"(a:
- &one |
  x: [

    y
- &two !!str >-  # folded
  x: [
  y
- !!str |2-
    x
  y
- - &three |+
    - &no |
      x

- key: |
    - &no |
      x
  next: *three
- plain | &no |
-   &far |
  x
b: |
  - &no |
   x
c: &four |
  x
d: |
e: |1
  x
)";
  EXPECT_EQ(YamlOf(text), YamlOf(R"({
    "a": ["x: [\n\n  y\n", "x: [ y", "  x\ny", ["- &no |\n  x\n\n"], {"key": "- &no |\n  x\n", "next": "- &no |\n  x\n\n"},
          "plain | &no |", "x\n"],
    "b": "- &no |\n x\n", "c": "x\n", "d": "", "e": " x\n"})"));
}

TEST(Yaml, EachFieldKnowsItsLine) {
  const auto documents = ReadYaml(R"(# one
spec:
  trainer:
    env:
    - name: A
      value: x
    - {name: B}
  more: &m
    deep: 1
  copy: *m
---
apiVersion: v1
kind: List
items:
- metadata:
    name: a
- b: 1
)");
  ASSERT_TRUE(documents.ok()) << documents.status();
  ASSERT_EQ(documents->size(), 3);
  const struct {
    size_t document;
    std::string_view path;
    int line;
  } rows[] = {
      {0, "", 2},
      {0, "spec", 2},
      {0, "spec.trainer.env", 4},
      {0, "spec.trainer.env[0]", 5},
      {0, "spec.trainer.env[0].value", 6},
      {0, "spec.trainer.env[1].name", 7},
      {0, "spec.trainer.env[1].value", 7},  // an unknown path: the line of the nearest path above
      {0, "spec.trainer.env[9].name", 4},
      {0, "spec.copy.deep", 10},
      {0, "status.x", 2},
      {1, "", 15},
      {1, "metadata.name", 16},
      {2, "b", 17},
  };
  for (const auto& row : rows) EXPECT_EQ((*documents)[row.document].LineOf(row.path), row.line) << row.path;
  EXPECT_EQ(YamlDocument().LineOf("a.b"), 1);
}

TEST(Yaml, ErrorsHaveALine) {
  const auto documents = ReadYaml("metadata:\n  labels:\n    a.b/c: 1\n  name: x\n");
  ASSERT_TRUE(documents.ok()) << documents.status();
  const struct {
    std::string_view error, located;
  } rows[] = {
      {"metadata.labels.a.b/c: 1 is not a string", "f.yaml:3: metadata.labels.a.b/c: 1 is not a string"},
      {"metadata.uid: it is missing", "f.yaml:1: metadata.uid: it is missing"},
      {"metadata.labels.q.r: x", "f.yaml:2: metadata.labels.q.r: x"},
      {"no path", "f.yaml:1: no path"},
  };
  for (const auto& row : rows) {
    const Status located = LocatedIn((*documents)[0], "f.yaml", absl::InvalidArgumentError(std::string(row.error)));
    EXPECT_EQ(Message(located), row.located);
  }
  EXPECT_TRUE(LocatedIn((*documents)[0], "f.yaml", absl::OkStatus()).ok());
}

TEST(Yaml, RefusesWithTheLineOfTheFault) {
  std::string deep;
  for (int i = 0; i < 101; ++i) deep += "{a: ";
  deep += "1" + std::string(101, '}');
  const struct {
    std::string text, message;
  } rows[] = {
      {"a: 1\nb: 2\na: 3\n", "line 3, column 1: the key 'a' is there twice in one map"},
      {"x: {a: 1, a: 2}", "line 1, column 11: the key 'a' is there twice in one map"},
      {"on: 1\ntrue: 2\n", "line 2, column 1: the key 'true' is there twice in one map"},
      {"just text", "line 1, column 1: 'just text' is not an object"},
      {"a: 1\n---\n- b\n", "line 3, column 1: a list is not an object"},
      {"a: .inf", "line 1, column 4: '.inf' is not a number that JSON has"},
      {"a: !!int x", "line 1, column 4: 'x' with the tag 'tag:yaml.org,2002:int' cannot be read; leave the tag out"},
      {"a: !mine x", "line 1, column 4: 'x' with the tag '!mine' cannot be read; leave the tag out"},
      {"a: !mine {}", "line 1, column 4: the tag '!mine' is not known; leave it out"},
      {"a: !!seq {}", "line 1, column 4: the tag 'tag:yaml.org,2002:seq' is not known; leave it out"},
      {"? [a]\n: b\n", "line 1, column 3: a key is a list or a map; write a string"},
      {"? {a: b}\n: b\n", "line 1, column 3: a key is a list or a map; write a string"},
      {"~: b\n", "line 1, column 1: a key is empty; write a string"},
      {"a: &x {}\n*x : b\n", "line 2, column 1: a key is not a string; write a string"},
      {"a: &x [*x]", "line 1, column 8: the alias is inside the node that it refers to"},
      {"a: {<<: 5}", "line 1, column 9: << needs a map, or a list of maps"},
      {"a: {<<: [5]}", "line 1, column 9: << needs a map, or a list of maps"},
      {std::string("a: \0", 4),
       "line 1, column 4: a control character is there; take it out, or write it as \"\\x..\""},
      {"a: 1\nb: \x04\n", "line 2, column 4: a control character is there; take it out, or write it as \"\\x..\""},
      {"a: \xff", "line 1, column 4: it is not UTF-8; save the file in UTF-8"},
      {"\xff\xfe"
       "a",
       "line 1, column 1: it is not UTF-8; save the file in UTF-8"},
  };
  for (const auto& row : rows) EXPECT_EQ(Why(row.text), row.message) << row.text;
  EXPECT_NE(Why(deep).find("nested more than 100 levels deep"), std::string::npos) << Why(deep);
  for (std::string_view text : {"a: [1", "a: b: c", "a: *none", "\ta: 1", "%YAML 9.9\n---\na: 1", "a: \"", "a: |x",
                                "a: \"b\n", "a: 'b\nc: 1\n  ", "a: 'b\n\t", "a: '\r\n"}) {
    EXPECT_TRUE(Why(text).starts_with("line ")) << text << ": " << Why(text);
  }
}

TEST(Yaml, AliasesAreBounded) {
  // Each line is ten times the line before it.
  std::string laughs = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'j'; ++c) {
    laughs += fmt::format("{0}: &{0} [*{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}]\n", c,
                          static_cast<char>(c - 1));
  }
  EXPECT_NE(Why(laughs).find("it makes more than 1000000 nodes"), std::string::npos) << Why(laughs);
  // An alias may repeat few nodes but much text.
  std::string text = "a: &a " + std::string(10'000, 'x') + "\nb: [";
  for (int i = 0; i < 100; ++i) text += "*a,";
  text += "]\n";
  EXPECT_EQ(Why(text), "it was read");
  EXPECT_NE(Why(text, 1000).find("it makes more than 1000 nodes"), std::string::npos);
  // The text is shallow; its aliases nest deeply.
  std::string deep = "a: &a0 {}\n";
  for (int i = 1; i < 60; ++i) deep += fmt::format("k{0}: &a{0} {{x: {{x: *a{1}}}}}\n", i, i - 1);
  EXPECT_NE(Why(deep).find("nested more than 100 levels deep"), std::string::npos) << Why(deep);
  // Nodes outside aliases count too.
  EXPECT_NE(Why("a: [1, 2, 3]", 5).find("it makes more than 5 nodes"), std::string::npos);
  EXPECT_EQ(Why("a: [1, 2, 3]", 6), "it was read");
}

}  // namespace
}  // namespace muster::controller
