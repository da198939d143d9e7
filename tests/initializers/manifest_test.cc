// SPDX-License-Identifier: Apache-2.0
// The completion manifest: it is readable for people, and malformed text is refused.
#include "initializers/target/manifest.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kHash = "crc32c:e3069283";

Manifest Example() {
  Manifest manifest;
  manifest.source = "hf://openai-community/gpt2@main";
  manifest.version = "607a30d783dfa663caf39e06633721c8d4cfcd7e";
  manifest.endpoint = "https://huggingface.co";
  manifest.selection = "ignore=*.h5";
  manifest.tool = "muster 0.1.0 (abc)";
  manifest.completed_unix_ms = 1'795'309'323'456;
  manifest.files = {
      {"a.txt", 9, std::string(kHash), true, "\"etag\"", 1'795'309'323'000'000'001},
      {"b/", 0, "", false, "", -1},
      {"c/d e.bin", uint64_t{1} << 63, "md5/8388608:0123456789abcdef0123456789abcdef", false, "17", 0},
  };
  return manifest;
}

std::string_view ExampleText() {
  return R"json({"schema":1,
"source":"hf://openai-community/gpt2@main",
"version":"607a30d783dfa663caf39e06633721c8d4cfcd7e",
"endpoint":"https://huggingface.co",
"selection":"ignore=*.h5",
"tool":"muster 0.1.0 (abc)",
"completed_unix_ms":1795309323456,
"files":[
{"path":"a.txt","size":9,"hash":"crc32c:e3069283","verified":true,"version":"\"etag\"","modified_ns":1795309323000000001},
{"path":"b/","size":0,"hash":"","verified":false,"version":"","modified_ns":-1},
{"path":"c/d e.bin","size":9223372036854775808,"hash":"md5/8388608:0123456789abcdef0123456789abcdef","verified":false,"version":"17","modified_ns":0}
]}
)json";
}

TEST(Manifest, IsWritten) {
  EXPECT_EQ(WriteManifest(Example()), ExampleText());
  Manifest unsorted = Example();
  unsorted.files.push_back(unsorted.files.PopFront());
  EXPECT_EQ(WriteManifest(unsorted), ExampleText());
}

TEST(Manifest, IsReadBack) {
  EXPECT_EQ(*ReadManifest(ExampleText()), Example());
  EXPECT_EQ(*ReadManifest(WriteManifest(Manifest())), Manifest());
}

TEST(Manifest, OfWhatWasUnpackedAndOfWhatWasNotHashed) {
  Manifest manifest = Example();
  manifest.files = {{"d.tar", 9, std::string(kHash), true, "v", 0, true},
                    {"d/x", 2, std::string(kHash), false, "v", 5, false, "d.tar"},
                    {"y", 1, "", false, "v", 6}};
  const std::string text = WriteManifest(manifest);
  EXPECT_NE(
      text.find(R"("path":"d.tar","size":9,"hash":"crc32c:e3069283","verified":true,"version":"v","modified_ns":0,)"
                R"("unpacked":true})"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("modified_ns":5,"archive":"d.tar"})"), std::string::npos) << text;
  EXPECT_EQ(*ReadManifest(text), manifest);
}

TEST(Manifest, OddNamesSurvive) {
  Manifest manifest = Example();
  manifest.files = {};
  for (std::string name : {"\"", "\\", "\x01", "\n", "\t", "\x1f", "\x7f", "日本語", "😀", "é", "e\u0301", "\u2028",
                           "\uFFFD", "\uFFFF", "\U0010FFFF", "$x", "a\"b\\c/\"", " ", "{\"path\":"}) {
    manifest.files.push_back({name, 1, std::string(kHash), true, name, 1});
  }
  manifest.files.Sort();
  manifest.source = manifest.selection = "\x01\"\\😀";
  const std::string text = WriteManifest(manifest);
  EXPECT_EQ(*ReadManifest(text), manifest);
  // One line for each file, whatever its name.
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), static_cast<int64_t>(9 + manifest.files.size()));
}

TEST(Manifest, TextsThatAreNoUtf8DoNotBreakIt) {
  Manifest manifest = Example();
  ManifestFile odd = manifest.files[0];
  odd.version = "\"\xff\xc3\"";
  manifest.files = {odd};
  auto read = ReadManifest(WriteManifest(manifest));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->files[0].version, "\"\uFFFD\uFFFD\"");
}

TEST(Manifest, UnknownFieldsAreLeftOut) {
  std::string text(ExampleText());
  text.replace(1, 0, R"("new":{"a":[1,{"path":2},null],"files":[[]]},"b":null,"c":[],"d":1.5,"e":true,)");
  text.insert(text.find("\"size\":9,"), R"("mode":420,"owner":{"id":[0]},"x":[{}],)");
  EXPECT_EQ(*ReadManifest(text), Example());
}

TEST(Manifest, OrderOfFieldsAndBlanksDoNotMatter) {
  const auto read = ReadManifest(R"( {"files" : [ { "modified_ns":1, "version":"v", "verified":false,
      "hash":"crc32c:E3069283", "size":2, "path":"\u00e9\ud83d\ude00" } ], "completed_unix_ms":0, "tool":"", "selection":"",
      "endpoint":"", "version":"", "source":"s", "schema":1 } )");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->files[0], (ManifestFile{"é😀", 2, "crc32c:E3069283", false, "v", 1}));
}

// Replaces the first `old` in the example with `fresh`; returns the error.
std::string ErrorWith(std::string_view old, std::string_view fresh) {
  std::string text(ExampleText());
  const size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  const auto read = ReadManifest(text.replace(at, old.size(), fresh));
  if (read.ok()) return "none";
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(read.status()));
}

TEST(Manifest, WrongFieldsAreNamed) {
  const struct {
    std::string_view old, fresh, error;
  } rows[] = {
      {R"("schema":1)", R"("schema":2)",
       "the manifest: it has schema 2, and this Muster knows 1; use the one that wrote it; remove "
       ".muster/manifest.json to "
       "start anew"},
      {R"("schema":1)", R"("schema":99999999999)", "the manifest: schema is of another kind"},
      {R"("schema":1)", R"("schema":"1")", "the manifest: schema is of another kind"},
      {R"("schema":1,)", "", "the manifest: schema is missing"},
      {R"("source":")", R"("source":"x","source":")", "the manifest: source is there twice"},
      {R"("source":"hf://openai-community/gpt2@main")", R"("source":null)", "source is of another kind"},
      {R"("source":"hf://openai-community/gpt2@main")", R"("source":{})", "source is of another kind"},
      {R"("source":"hf://openai-community/gpt2@main")", R"("source":["x"])", "source is of another kind"},
      {R"("completed_unix_ms":)", R"("completed_unix_ms":1.0,"x":)", "completed_unix_ms is of another kind"},
      {R"("completed_unix_ms":)", R"("completed_unix_ms":9223372036854775808,"x":)",
       "completed_unix_ms is of another kind"},
      {R"("files":[)", R"("files":1,"x":[)", "files is of another kind"},
      {R"("files":[)", R"("files":{},"x":[)", "files is of another kind"},
      {R"("files":[)", R"("files":[],"files":[)", "files is there twice"},
      {R"("files":[)", R"("files":[1,)", "file 1: it is not a JSON object"},
      {R"("files":[)", R"("files":[[],)", "file 1: it is not a JSON object"},
      {R"("files":[)", R"("fails":[)", "files is missing"},
      {R"("path":"a.txt",)", "", "file 1: path is missing"},
      {R"("path":"b/",)", "", "file 2: path is missing"},
      {R"("path":"a.txt")", R"("path":"../a.txt")", "file 1: the object '../a.txt' cannot be a file below the target"},
      {R"("path":"a.txt")", R"("path":"/a.txt")", "has an empty element"},
      {R"("path":"a.txt")", R"("path":"")", "is empty"},
      {R"("path":"a.txt")", R"("path":".muster/x")", "Muster's own"},
      {R"("path":"a.txt")", R"("path":"a\u0000b")", "contains a NUL"},
      {R"("path":"a.txt")", R"("path":"x.txt")", "file 2: files are sorted by path, and each is there once"},
      {R"("path":"b/","size":0,"hash":"")", R"("path":"a.txt","size":0,"hash":"crc32c:00000000")",
       "file 2: files are sorted"},
      {R"("size":9)", R"("size":-9)", "file 1: size is of another kind"},
      {R"("size":9)", R"("size":9.0)", "size is of another kind"},
      {R"("size":9)", R"("size":"9")", "size is of another kind"},
      {R"("size":9)", R"("size":true)", "size is of another kind"},
      {R"("size":9)", R"("size":18446744073709551616)", "size is of another kind"},
      {R"("size":9)", R"("size":9,"size":9)", "file 1: size is there twice"},
      {R"("verified":true)", R"("verified":1)", "verified is of another kind"},
      {R"("verified":true)", R"("verified":"true")", "verified is of another kind"},
      {R"("hash":"crc32c:e3069283")", R"("hash":"crc32c:e306")",
       "file 1: hash: 'crc32c:e306' is not a hash: crc32c has 8"},
      {R"("hash":"crc32c:e3069283")", R"("hash":"sha3:00")", "is of an unknown hash"},
      {R"("path":"b/","size":0)", R"("path":"b/","size":1)", "file 2: it is a folder, which has no size and no hash"},
  };
  for (const auto& row : rows) EXPECT_THAT(ErrorWith(row.old, row.fresh), HasSubstr(row.error)) << row.fresh;
}

std::string ErrorOf(std::string_view text) {
  const auto read = ReadManifest(text);
  return read.ok() ? "none" : std::string(Message(read.status()));
}

TEST(Manifest, WhatIsNoJsonIsNamed) {
  const struct {
    std::string_view text, error;
  } rows[] = {
      {"", "the manifest: byte 1: it is not JSON near ''; remove .muster/manifest.json to start anew"},
      {"null", "the manifest: it is not a JSON object"},
      {"[]", "the manifest: it is not a JSON object"},
      {"\"x\"", "it is not a JSON object"},
      {"1", "it is not a JSON object"},
      {"{}", "schema is missing"},
      {"<html>", "byte 1: it is not JSON near '<'"},
      {"{\"source\":\"\xff\"}", "it is not JSON near '\"\\xff'"},
      {"{\"source\":\"\\ud800\"}", "it is not JSON"},
      {"{\"source\":\"a\nb\"}", "it is not JSON"},
      {"{} {}", "schema is missing"},
      {std::string_view("\0\0\0\0", 4), "it is not JSON"},
  };
  for (const auto& row : rows) EXPECT_THAT(ErrorOf(row.text), HasSubstr(row.error)) << row.text;
  EXPECT_THAT(ErrorOf(std::string(ExampleText()) + "x"), HasSubstr("it is not JSON near"));
  EXPECT_THAT(ErrorOf("{\"a\":" + std::string(100'000, 'x')), HasSubstr("it is not JSON"));
  // A file that a crash has cut at any byte.
  for (size_t size = 0; size + 1 < ExampleText().size(); ++size) {
    EXPECT_THAT(ErrorOf(ExampleText().substr(0, size)), HasSubstr("it is not JSON")) << size;
  }
}

TEST(Manifest, IsBounded) {
  EXPECT_THAT(ErrorOf("{\"x\":" + std::string(1'000'000, '[')), HasSubstr("something is nested deeper than 64"));
  std::string nested = "{\"x\":";
  for (int i = 0; i < 100'000; ++i) nested += "{\"a\":";
  EXPECT_THAT(ErrorOf(nested), HasSubstr("something is nested deeper than 64"));
  const std::string long_text(5'000'000, 'y');
  EXPECT_LT(ErrorOf("{\"schema\":1,\"files\":[{\"path\":\"" + long_text +
                    "\",\"size\":0,\"hash\":\"\",\"verified\":true," + "\"version\":\"\",\"modified_ns\":0}]}")
                .size(),
            1'000U);
  EXPECT_LT(ErrorOf("{\"" + long_text).size(), 1'000U);
}

TEST(Manifest, OfManyFiles) {
  Manifest manifest = Example();
  manifest.files = {};
  for (int i = 0; i < 20'000; ++i) {
    manifest.files.push_back({fmt::format("train/{:03}/{:06}.jpg", i / 100, i), static_cast<uint64_t>(i),
                              std::string(kHash), i % 2 == 0, fmt::format("\"{:032x}\"", i), i});
  }
  EXPECT_EQ(*ReadManifest(WriteManifest(manifest)), manifest);
}

}  // namespace
}  // namespace muster::initializers
