// SPDX-License-Identifier: Apache-2.0
#include "base/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/text.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ReadJson, IsAllOfIt) {
  for (const char* text : {R"({"a":1,"b":[2,[3]]})", "7", "null", "[]", "\"text\"", " {} \n"}) {
    const StatusOr<Json> read = ReadJson(text, 2);
    ASSERT_TRUE(read.ok()) << text << ": " << read.status();
    EXPECT_EQ(*read, Json::parse(text)) << text;
  }
}

TEST(ReadJson, RefusesWhatIsNoneOrTooDeep) {
  const std::string a_million = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  struct Row {
    std::string text;
    int deepest;
    std::string why;
  };
  for (const Row& row : {
           Row{R"({"a":1,"b":[2,[3]]})", 1, "is nested more than 2 levels deep"},
           Row{"[1,{}]", 0, "is nested more than 1 levels deep"},
           Row{a_million, 64, "is nested more than 65 levels deep"},
           Row{a_million.substr(0, 1'500'000), 64, "is not JSON: wrong at line 1, column 1500001"},
           Row{"", 8, "is not JSON: wrong at line 1, column 1"},
           Row{"{", 8, "is not JSON: wrong at line 1, column 2"},
           Row{"{} {}", 8, "is not JSON: wrong at line 1, column 4"},
           Row{"{\n  \"a\": 1,\n  b: 2\n}", 8, "is not JSON: wrong at line 3, column 3"},
           Row{"{\"a\":\xff}", 8, "is not JSON: wrong at line 1, column 6"},
           Row{"[1,]", 8, "is not JSON: wrong at line 1, column 4"},
           Row{"[1e999]", 8, "has a number that is out of range"},
       }) {
    const Status status = ReadJson(row.text, row.deepest).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << row.text.substr(0, 40);
    EXPECT_EQ(Message(status), row.why) << row.text.substr(0, 40);
  }
}

TEST(ReadJsonTop, LeavesOutWhatIsNestedDeeper) {
  struct Row {
    std::string text;
    int deepest;
    std::string kept;
  };
  for (const Row& row : {
           Row{R"({"a":1,"b":[2,[3]]})", 8, R"({"a":1,"b":[2,[3]]})"},
           Row{R"({"a":1,"b":[2,[3]]})", 1, R"({"a":1,"b":[2]})"},
           Row{R"([1,{"a":2},[3],4])", 0, "[1,4]"},
           Row{"7", 0, "7"},
       }) {
    EXPECT_EQ(ReadJsonTop(row.text, row.deepest), Json::parse(row.kept)) << row.text << " to " << row.deepest;
  }
  const Json left_out = ReadJsonTop(R"({"a":{"x":1},"b":{"y":2},"c":[3],"d":4})", 0);
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(FindField(left_out, name), nullptr) << name;
  EXPECT_EQ(*FindField(left_out, "d"), 4);
  EXPECT_TRUE(ReadJsonTop(std::string(1'000'000, '[') + std::string(1'000'000, ']'), 8).is_array());
  for (const char* text : {"", "{", "{} {}", "{\"a\":\xff}", "\"\xff\"", "[1,]", "nul"}) {
    EXPECT_TRUE(ReadJsonTop(text, 8).is_discarded()) << text;
  }
}

TEST(ReadJsonTop, LeavesOutFieldsOfTheirLevel) {
  const std::string text = R"({"x":1,"a":{"x":[{"x":2}],"b":{"x":3}},"c":[{"x":4}]})";
  struct Row {
    std::vector<JsonPlace> without;
    int below;
    std::string kept;
  };
  for (const Row& row : {
           Row{{{"x", 1}}, 0, R"({"a":{"x":[{"x":2}],"b":{"x":3}},"c":[{"x":4}]})"},
           Row{{{"x", 2}}, 0, R"({"x":1,"a":{"b":{"x":3}},"c":[{"x":4}]})"},
           Row{{{"x", 3}}, 0, R"({"x":1,"a":{"x":[{"x":2}],"b":{}},"c":[{}]})"},
           Row{{{"x", 1}}, 2, R"({"x":1,"a":{"x":[{"x":2}],"b":{}},"c":[{}]})"},
           Row{{{"a", 1}, {"x", 3}}, 0, R"({"x":1,"c":[{}]})"},
           Row{{{"", 1}}, 0, text},
       }) {
    EXPECT_EQ(ReadJsonTop(text, 8, {row.without, row.below}), Json::parse(row.kept)) << row.kept;
  }
  // What is left out may be deeper than what is stored.
  const std::vector<JsonPlace> deep = {{"x", 1}};
  EXPECT_EQ(ReadJsonTop(R"({"x":[[[1]],{"y":[2]}],"z":3})", 1, {deep}), Json::parse(R"({"z":3})"));
}

TEST(ReadJson, BoundsTheMemory) {
  constexpr size_t kMost = size_t{1} << 20;
  for (const char* element : {"{}", "[]", "\"\"", "0", "{\"\":{}}", "{\"a\":[\"b\"]}"}) {
    const auto list = [&](size_t count) {
      std::string text = "[0";
      for (size_t at = 0; at < count; ++at) text += fmt::format(",{}", element);
      return text + "]";
    };
    EXPECT_TRUE(ReadJson(list(1000), 8, kMost).ok()) << element;
    const Status status = ReadJson(list(100'000), 8, kMost).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << element;
    EXPECT_EQ(Message(status), "has too many values: they would take more than 1 MiB of memory") << element;
    EXPECT_TRUE(ReadJsonTop(list(100'000), 8, {}, kMost).is_discarded()) << element;
    EXPECT_TRUE(ReadJsonTop(list(100'000), 8).is_array()) << element;
  }
}

TEST(ReadJsonHead, KeepsWhatIsComplete) {
  const std::string text = R"({"a":1,"b":{"c":"text","d":[2,{"e":3}]},"f":4})";
  struct Row {
    size_t bytes;
    std::string kept;
  };
  for (const Row& row : {Row{0, ""}, Row{1, "{}"}, Row{5, R"({})"}, Row{7, R"({"a":1})"}, Row{20, R"({"a":1,"b":{}})"},
                         Row{23, R"({"a":1,"b":{"c":"text"}})"}, Row{38, R"({"a":1,"b":{"c":"text","d":[2,{"e":3}]}})"},
                         Row{text.size(), text}}) {
    const Json read = ReadJsonHead(std::string_view(text).substr(0, row.bytes), 8);
    EXPECT_EQ(row.kept.empty() ? "" : WriteJson(Json::parse(row.kept)), read.is_discarded() ? "" : WriteJson(read))
        << row.bytes;
  }
}

TEST(FindField, IsNothingForAbsentNullAndWhatIsNoObject) {
  const Json object = *ReadJson(R"({"a":null,"b":0,"c":"text"})", 8);
  EXPECT_EQ(FindField(object, "a"), nullptr);
  EXPECT_NE(FindField(object, "b"), nullptr);
  EXPECT_EQ(FindField(object, "d"), nullptr);
  EXPECT_EQ(TextField(object, "b"), "");
  EXPECT_EQ(TextField(object, "c"), "text");
  for (const char* text : {"[1]", "\"a\"", "1", "{"}) EXPECT_EQ(FindField(ReadJsonTop(text, 8), "a"), nullptr) << text;
}

TEST(JsonFields, ReadsWhatIsThere) {
  const Json object = *ReadJson(
      R"({"text":"a","flag":true,"number":-3,"big":9007199254740993,"real":0.5,"texts":["a","b","c"],"null":null})", 8);
  JsonFields fields(object, "");
  EXPECT_EQ(fields.Text("text"), "a");
  EXPECT_TRUE(fields.Flag("flag"));
  EXPECT_EQ(fields.Number("number"), -3);
  EXPECT_EQ(fields.Number("number", -3, -3), -3);
  EXPECT_EQ(fields.Number("big"), 9007199254740993);
  EXPECT_EQ(fields.Real("real", 0, 1), 0.5);
  EXPECT_EQ(fields.Real("number", -3, 0), -3);
  EXPECT_THAT(fields.Texts("texts"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(fields.Texts("texts", 2), ElementsAre("b", "c"));
  for (const char* none : {"null", "other"}) {
    EXPECT_EQ(fields.Text(none), "");
    EXPECT_FALSE(fields.Flag(none));
    EXPECT_EQ(fields.Number(none), std::nullopt);
    EXPECT_EQ(fields.Real(none, 0, 1), std::nullopt);
    EXPECT_THAT(fields.Texts(none), IsEmpty());
  }
  fields.Need({"text", "number"});
  EXPECT_TRUE(fields.status().ok()) << fields.status();
}

TEST(JsonFields, SaysWhatIsWrong) {
  struct Row {
    std::string value;
    std::function<void(JsonFields&)> read;
    std::string said;
  };
  auto text = [](JsonFields& fields) { fields.Text("x"); };
  auto flag = [](JsonFields& fields) { fields.Flag("x"); };
  auto number = [](JsonFields& fields) { fields.Number("x", 0, 9); };
  auto any_number = [](JsonFields& fields) { fields.Number("x"); };
  auto real = [](JsonFields& fields) { fields.Real("x", 0, 9); };
  auto texts = [](JsonFields& fields) { fields.Texts("x"); };
  for (const Row& row : {
           Row{"1", text, "file: 'x' is not a text"},
           Row{"1", flag, "file: 'x' is not true or false"},
           Row{"10", number, "file: 'x' is not a whole number from 0 to 9"},
           Row{"-1", number, "file: 'x' is not a whole number from 0 to 9"},
           Row{"1.0", number, "file: 'x' is not a whole number from 0 to 9"},
           Row{"18446744073709551615", number, "file: 'x' is not a whole number from 0 to 9"},
           Row{"9223372036854775808", any_number,
               "file: 'x' is not a whole number from -9223372036854775808 to 9223372036854775807"},
           Row{"\"1\"", real, "file: 'x' is not a number from 0 to 9"},
           Row{"1e99", real, "file: 'x' is not a number from 0 to 9"},
           Row{"\"a\"", texts, "file: 'x' is not a list of texts"},
           Row{"[\"a\",1]", texts, "file: 'x' is not a list of texts"},
           Row{"null", [](JsonFields& fields) { fields.Need({"x"}); }, "file: 'x' is not there"},
       }) {
    const Json object = *ReadJson(fmt::format(R"({{"x":{}}})", row.value), 8);
    JsonFields fields(object, "file: ");
    row.read(fields);
    fields.Wrong("y", "asked for");  // the first error stays
    EXPECT_TRUE(absl::IsInvalidArgument(fields.status())) << row.value;
    EXPECT_EQ(Message(fields.status()), row.said);
  }
}

}  // namespace
}  // namespace muster
