// SPDX-License-Identifier: Apache-2.0
// Which paths objects may have, and which objects are wanted.
#include "initializers/facts/entry_path.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const Status& status) { return status.ok() ? "" : std::string(Message(status)); }

TEST(EntryPath, MayLandBelowTheTarget) {
  const std::string rows[] = {
      "a",
      "a/b/c.txt",
      "dir/",
      "a/b/",
      ".hidden",
      "..a",
      "...",
      "a..b/c",
      "a/.muster",
      ".muster2/a",
      "muster/a",
      "a b",
      " ",
      "a\\..\\b",
      "C:\\x",
      "naïve/日本語/😀",
      "new\nline",
      "-rf",
      "~",
      "$HOME/*",
      std::string(255, 'a'),
      std::string(255, 'a') + "/" + std::string(255, 'b'),
      std::string(1'000, 'a').replace(250, 1, "/").replace(500, 1, "/").replace(750, 1, "/"),
  };
  for (const std::string& row : rows) EXPECT_EQ(ErrorOf(CheckEntryPath(row)), "") << row;
}

TEST(EntryPath, MayNotLandAnywhereElse) {
  std::string deep;
  while (deep.size() <= kLongestPath) deep += "abcdefg/";
  std::string key_of_1024(1'024, 'k');  // S3's longest, without a slash
  const struct {
    std::string path;
    std::string_view error;
  } rows[] = {
      {"",
       "the object '' cannot be a file below the target: its name is empty; rename it, or leave it out with --ignore"},
      {"/", "an empty element"},
      {"/etc/passwd", "the object '/etc/passwd' cannot be a file below the target: its name has an empty element"},
      {"//", "an empty element"},
      {"a//b", "an empty element"},
      {"a//", "an empty element"},
      {".", "'.' or '..'"},
      {"./", "'.' or '..'"},
      {"..", "'.' or '..'"},
      {"../", "'.' or '..'"},
      {"../a", "'.' or '..'"},
      {"./a", "'.' or '..'"},
      {"a/..", "'.' or '..'"},
      {"a/../b", "'.' or '..'"},
      {"a/./b", "'.' or '..'"},
      {"a/b/../../../c", "'.' or '..'"},
      {std::string("a\0b", 3), "the object 'a\\x00b' cannot be a file below the target: its name contains a NUL"},
      {std::string("\0", 1), "contains a NUL"},
      {std::string(256, 'a'), "beyond 255 bytes"},
      {"d/" + std::string(256, 'a') + "/b", "beyond 255 bytes"},
      {key_of_1024, "beyond 255 bytes"},
      {std::string(128, '\xc3') + std::string(128, '\xa9'), "not UTF-8"},
      {"caf\xe9", "the object 'caf\\xe9' cannot be a file below the target: its name is not UTF-8"},
      {"a\xc0\xaf..", "not UTF-8"},  // an overlong slash
      {deep, "longer than 3072 bytes"},
      {".muster", "is in .muster, which is Muster's own"},
      {".muster/", "is in .muster"},
      {".muster/manifest.json", "is in .muster"},
      {".muster/a/b", "is in .muster"},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(ErrorOf(CheckEntryPath(row.path)), HasSubstr(row.error)) << row.path;
    EXPECT_EQ(CheckEntryPath(row.path).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_LT(ErrorOf(CheckEntryPath(row.path)).size(), 1'000U);
  }
}

// Adds all names; returns the first error.
std::string AddAll(const std::vector<std::string>& names) {
  EntryPaths paths;
  for (const std::string& name : names) {
    const Status added = paths.Add(name);
    if (!added.ok()) {
      EXPECT_EQ(added.code(), absl::StatusCode::kAlreadyExists);
      return ErrorOf(added);
    }
  }
  return "";
}

TEST(EntryPaths, ThatGoTogether) {
  EXPECT_EQ(AddAll({}), "");
  EXPECT_EQ(AddAll({"a", "b", "A", "c/a", "c/b", "c/d/a", "ab", "a.txt", "a b"}), "");
  EXPECT_EQ(AddAll({"a/", "a/b", "a/", "a/c/", "a/c/d"}), "");
  EXPECT_EQ(AddAll({"a/b/", "a/"}), "");
  EXPECT_EQ(AddAll({"x/a/b", "y/a", "a/x/b"}), "");
  EXPECT_EQ(AddAll({"e\u0301", "\u00e9"}), "");  // Linux file systems treat them as two names
}

TEST(EntryPaths, ThatCollide) {
  const struct {
    std::vector<std::string> names;
    std::string_view error;
  } rows[] = {
      {{"a", "b", "a"},
       "the objects 'a' and 'a' cannot both be below the target: they have the same name; leave one out with --ignore"},
      {{"d/e/f", "d/e/f"}, "'d/e/f' and 'd/e/f' cannot both be below the target: they have the same name"},
      {{"a", "a/b"},
       "the objects 'a' and 'a/b' cannot both be below the target: one is a file where the other needs a folder; "
       "leave"},
      {{"a/b", "a"}, "'a/b' and 'a' cannot both"},
      {{"a/b/c", "z", "a/b"}, "'a/b/c' and 'a/b' cannot both"},
      {{"a/b/c/d/e", "a"}, "'a/b/c/d/e' and 'a' cannot both"},
      {{"x/a", "x/a/b/c"}, "'x/a' and 'x/a/b/c' cannot both"},
      {{"a", "a/"}, "'a' and 'a/' cannot both be below the target: one is a file where"},
      {{"a/", "a"}, "'a/' and 'a' cannot both be below the target: one is a file where"},
      {{"a/b/", "a"}, "'a/b/' and 'a' cannot both"},
  };
  for (const auto& row : rows) EXPECT_THAT(AddAll(row.names), HasSubstr(row.error)) << row.names.back();
}

TEST(EntryPaths, ManyAreTakenAndClashesFound) {
  EntryPaths paths;
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(paths.Add(fmt::format("train/{:03}/{:06}.jpg", i % 1'000, i)).ok());
  }
  EXPECT_FALSE(paths.Add("train/007/000007.jpg").ok());
  EXPECT_THAT(ErrorOf(paths.Add("train/007")), HasSubstr("'train/007/0"));
}

// Values by fnmatch.fnmatchcase of Python 3.11.
TEST(Patterns, AreFnmatchs) {
  const struct {
    std::string_view pattern, path;
    bool matches;
  } rows[] = {
      {"*.bin", "a.bin", true},
      {"*.bin", "d/a.bin", true},
      {"*.bin", "a.bin.index.json", false},
      {"*.bin", ".bin", true},
      {"*.bin", "A.BIN", false},
      {"*", "", true},
      {"*", "a", true},
      {"*", "a/b", true},
      {"*", ".hidden", true},
      {"?", "a", true},
      {"?", "/", true},
      {"?", "é", true},
      {"?", "😀", true},
      {"?", "ab", false},
      {"?", "", false},
      {"\?\?", "é", false},
      {"\?\?", "ab", true},
      {"a*b", "ab", true},
      {"a*b", "a/x/b", true},
      {"a*b", "abc", false},
      {"a*b", "a\nb", true},
      {"[ab]", "a", true},
      {"[ab]", "b", true},
      {"[ab]", "c", false},
      {"[ab]", "ab", false},
      {"[!ab]", "a", false},
      {"[!ab]", "c", true},
      {"[!ab]", "/", true},
      {"[!ab]", "é", true},
      {"[a-c]x", "bx", true},
      {"[a-c]x", "dx", false},
      {"[a-c]x", "-x", false},
      {"[a-]", "a", true},
      {"[a-]", "-", true},
      {"[a-]", "b", false},
      {"[-a]", "-", true},
      {"[-a]", "a", true},
      {"[]]", "]", true},
      {"[]]", "a", false},
      {"[]a]", "]", true},
      {"[]a]", "a", true},
      {"[]a]", "[]a]", false},
      {"[!]]", "]", false},
      {"[!]]", "a", true},
      {"[!]", "[!]", true},
      {"[!]", "!", false},
      {"[!]", "a", false},
      {"[]", "[]", true},
      {"[]", "", false},
      {"[", "[", true},
      {"[", "a", false},
      {"a[", "a[", true},
      {"a[", "a", false},
      {"[a", "[a", true},
      {"[a", "a", false},
      {"[c-a]", "a", false},
      {"[c-a]", "b", false},
      {"[c-a]", "c", false},
      {"[c-a]", "-", false},
      {"[!c-a]", "a", true},
      {"[!c-a]", "b", true},
      {"[!c-a]", "-", true},
      {"[!c-a]", "", false},
      {"[c-ab]", "b", true},
      {"[c-ab]", "a", false},
      {"[c-ab]", "c", false},
      {"[a-c-e]", "b", true},
      {"[a-c-e]", "-", true},
      {"[a-c-e]", "d", false},
      {"[a-c-e]", "e", true},
      {"[a-c--e]", "-", true},
      {"[a-c--e]", "/", true},
      {"[a-c--e]", "d", true},
      {"[a-c--e]", "b", true},
      {"[^a]", "^", true},
      {"[^a]", "a", true},
      {"[^a]", "b", false},
      {"[!^a]", "^", false},
      {"[!^a]", "a", false},
      {"[!^a]", "b", true},
      {"[[]", "[", true},
      {"[[a]]", "[]", true},
      {"[[a]]", "a]", true},
      {"[a]]", "a]", true},
      {"[a]]", "a", false},
      {"[\\]", "\\", true},
      {"[\\n]", "\\", true},
      {"[\\n]", "n", true},
      {"\\*", "\\", true},
      {"\\*", "\\a", true},
      {"\\*", "*", false},
      {"[a-é]", "z", true},
      {"[a-é]", "é", true},
      {"[a-é]", "ü", false},
      {"[é]", "é", true},
      {"[é]", "Ã", false},
      {"[!é]", "é", false},
      {"[!é]", "e", true},
      {"[!é]", "ü", true},
      {"[&&]", "&", true},
      {"[a||b]", "|", true},
      {"[a||b]", "a", true},
      {"[~~]", "~", true},
      {"***a", "a", true},
      {"***a", "ba", true},
      {"*a*b*c", "abc", true},
      {"*a*b*c", "xaxbxc", true},
      {"*a*b*c", "acb", false},
      {"a?c", "abc", true},
      {"a?c", "a/c", true},
      {"a?c", "ac", false},
      {"data/*", "data/a", true},
      {"data/*", "data/a/b", true},
      {"data/*", "data", false},
      {"data/*", "xdata/a", false},
      {"**/x", "x", false},
      {"**/x", "a/x", true},
      {"**/x", "a/b/x", true},
      {"*[0-9][0-9].json", "a10.json", true},
      {"*[0-9][0-9].json", "a1.json", false},
      {"[--0]", "-", true},
      {"[--0]", ".", true},
      {"[--0]", "/", true},
      {"[--0]", "0", true},
      {"[--0]", "1", false},
      {"[!-]", "-", false},
      {"[!-]", "a", true},
      {"[a-z-9]", "-", true},
      {"[a-z-9]", "9", true},
      {"[a-z-9]", "m", true},
      {"[z-ab-y]", "c", true},
      {"[z-ab-y]", "z", false},
      {"[z-ab-y]", "a", false},
      {"[z-ab-y]", "b", true},
      {"[+--]", "+", true},
      {"[+--]", ",", true},
      {"[+--]", "-", true},
      {"[+--]", ".", false},
      {".*", ".git", true},
      {".*", "a", false},
      {"*.safetensors", "model-00001-of-00002.safetensors", true},
      {"original/*", "original/consolidated.00.pth", true},
      {"original/*", "x/original/a", false},
      {"a[!/]b", "a/b", false},
      {"a[!/]b", "acb", true},
      {"a\\[b]", "a\\b", true},
      {"a\\[b]", "a[b]", false},
      {"[b?b^!a*", "a^a/", false},
      {"[!b*b[-é\\b", "]-^!", false},
      {"*", "b", true},
      {"é?", "é-", true},
      {"*", "/", true},
      {"[!cc^^?éb", "c-]", false},
      {"^\\b", "béa", false},
      {"[", "--", false},
      {"[![[/[]", "]", true},
      {"[!*-c]", "b", false},
      {"[!*a*]", "-", true},
      {"[!!b*", "cca", false},
      {"?*", "-c/", true},
      {"[*caa", "c/c", false},
      {"[!é**b", "^", false},
      {"[!]]*?[é!\\", "]", false},
      {"[!\\[*-]!!\\", "", false},
      {"[^]", "^", true},
      {"]//]!", "/", false},
      {"[]/*/*[*a", "baa", false},
      {"[!]]*[-", "bcé", false},
      {"[c\\/[\\", "b-bé", false},
      {"*", "!", true},
      {"[/]^?!/^?", "bé-^", false},
      {"é/[b\\-", "/é!", false},
      {"^c]", "/a", false},
      {"ba*--\?\?", "", false},
      {"[!!", "", false},
      {"a*/]b]^]", "", false},
      {"*?", "b!-/", true},
      {"[\\ca\\]ca?]", "^!c", false},
      {"[!]ab\\/]]", "]a", false},
      {"/\\]a!/", "cb", false},
      {"[!*^]*", "!éé", true},
      {"]*[/]é*c*", "é", false},
      {"[!*cé]", "^", true},
      {"c]ca/\?\?", "", false},
      {"*", "é-", true},
      {"[![?é?]//-", "/", false},
      {"[ba*]b\\c", "]!", false},
      {"[[*]/", "c", false},
      {"[!b", "", false},
      {"[\\éé\\", "a", false},
      {"[!!éé*-éc", "!/", false},
      {"[*a", "/ab-", false},
      {"?", "^", true},
      {"[?\\c-[*", "!/-", false},
      {"[!?b", "/!é", false},
      {"[!b?[\\]]", "-cé", false},
      {"éa**]\\", "/", false},
      {"[!\\\?/c\?\?*-", "/!", false},
      {"?", "é", true},
      {"*?", "!", true},
      {"[!?c]", "b", true},
      {"[!!]", "c", true},
      {"é]*]]^^/", "-écé", false},
      {"[\\é\\[\\]é", "!^", false},
      {"[!?-/]", "", false},
      {"[b", "!", false},
      {"*", "cé", true},
      {"[!*-/^", "", false},
      {"[!^!][!]-é-", "é/ac", false},
      {"[!**]", "^", true},
      {"b?[]\\[^?\\", "!^/!", false},
      {"*", "]!", true},
      {"[é*-^^/", "é-", false},
      {"[]*", "^", false},
      {"[!\?\?\?\?", "-a", false},
      {"[*é-\\cc\\-", "aé^/", false},
      {"[^", "bb-", false},
      {"\\\\b?b/", "", false},
      {"[é!-/]*", "!", true},
      {"[!c?\\", "]", false},
      {"[/*?aa?-/b", "", false},
      {"*", "-b!a", true},
      {"[éb]c", "]b!b", false},
      {"[/", "!b", false},
      {"?é[?[\\-/", "é", false},
      {"[!![-é!?]]]", "//", false},
      {"*", "éé-c", true},
      {"*a^a]", "!/^/", false},
      {"[^]-", "-!ba", false},
      {"[!^*ac?a\\!b", "^", false},
      {"[[\\]", "-éc", false},
      {"[![c]*^^^a", "", false},
      {"[!", "^é-", false},
      {"[!c/^]]éa", "é", false},
      {"-*b[*-b", "", false},
      {"[!bb^a*][[[", "éé^", false},
      {"[^/bb\\]é]", "", false},
      {"[!b]]*", "^]ac", true},
      {"*", "", true},
      {"é\\!*a^", "-", false},
      {"[!bc", "", false},
      {"[/!!*", "^b^]", false},
      {"*", "/é!-", true},
      {"[!b?[éa", "a!-]", false},
      {"]é]!?-b", "", false},
      {"[]bé", "é", false},
      {"[!]]", "a", true},
      {"[!]!-\\?]", "^-/", false},
      {"[!**-]", "", false},
      {"]\\^*", "]", false},
      {"]!!]-?", "/]", false},
      {"-", "/b/^", false},
      {"[!^^cb]", "/", true},
      {"?*", "c!", true},
      {"-é-ca", "!^b", false},
      {"[![*a-***]*", "a", true},
      {"**", "é!a", true},
      {"[!]bb", "-", false},
      {"]", "]", true},
      {"[!\\]b", "^b", true},
      {"[![é[\\bc*", "", false},
      {"[!]*b]", "/", true},
      {"b", "!/", false},
      {"!é-a*?", "", false},
      {"[aé?]a]a", "!]]]", false},
      {"/b[!?c", "/]", false},
      {"[!![*", "é/]^", false},
      {"*", "]é", true},
      {"[]!a!]cb", "!", false},
      {"[^", "]", false},
      {"[/é*", "", false},
      {"/*", "/", true},
      {"-!", "bab", false},
      {"b?c]", "c", false},
      {"[]c\\\\-\\bc]", "", false},
      {"[!\\", "b]", false},
      {"*", "é-", true},
      {"a", "a", true},
      {"[!!!é*?", "]-!/", false},
      {"[!-/-?c!", "cé]", false},
      {"c![*/", "^é", false},
      {"[!b!!?", "/", false},
      {"[/*]]", "]!", false},
      {"[]\\*^", "/^]", false},
      {"[!]a*/b]*", "-ca/", true},
      {"[!^**é[", "]!^^", false},
      {"b", "^!cb", false},
      {"*", "é!", true},
      {"[é", "-a-!", false},
      {"[c**?]", "-", false},
      {"[^é^aa?!b\\", "c/", false},
      {"[]?/c?c*", "!--", false},
      {"[![cé[é-", "!a/]", false},
      {"*", "]-", true},
      {"[!*-]*", "a", true},
      {"[!*^?c\\é\\\\", "", false},
      {"[!*-[", "", false},
      {"c", "c", true},
      {"*", "", true},
      {"]c[", "-", false},
      {"[é", "/ab", false},
      {"*", "/^ab", true},
      {"[!*[éé-]", "éa", false},
      {"]?*\\*/]", "ba", false},
      {"?^]^", "]", false},
      {"[c/", "-]!", false},
      {"]\\-", "cé^^", false},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(MatchesPattern(row.pattern, row.path), row.matches) << row.pattern << " on " << row.path;
  }
}

TEST(Patterns, AFolderMatchesAllBelowIt) {  // as in the hub's client
  EXPECT_TRUE(MatchesPattern("data/", "data/a"));
  EXPECT_TRUE(MatchesPattern("data/", "data/a/b"));
  EXPECT_TRUE(MatchesPattern("data/", "data/"));
  EXPECT_TRUE(MatchesPattern("*/x/", "a/x/b"));
  EXPECT_FALSE(MatchesPattern("data/", "data"));
  EXPECT_FALSE(MatchesPattern("data/", "old/data/a"));
  EXPECT_FALSE(MatchesPattern("data", "data/a"));
}

TEST(Patterns, ThatAreBareEndings) {
  BareEndings endings({".pth", ".pt", "*.bin", "bin", "a/.x"});
  for (const char* path : {"w.pth", "a/.pth", "w.pt", "w.bin", "w.pth.txt", "b/a/.x"}) endings.Add(path);
  EXPECT_THAT(endings.Texts(), ::testing::ElementsAre(
                                   "--ignore .pt leaves out only a file of that name; 1 file with this ending will be "
                                   "brought in; write *.pt to leave them out",
                                   "--ignore .pth leaves out only a file of that name; 2 files with this ending will "
                                   "be brought in; write *.pth to leave them out"));
}

TEST(Patterns, OfBytesThatAreNoUtf8) {
  EXPECT_TRUE(MatchesPattern("caf?", "caf\xe9"));
  EXPECT_TRUE(MatchesPattern("caf\xe9", "caf\xe9"));
  EXPECT_FALSE(MatchesPattern("caf\xe8", "caf\xe9"));
  EXPECT_TRUE(MatchesPattern("?\?", "\xe2\x82"));
  EXPECT_TRUE(MatchesPattern("[\xe0-\xef]", "\xe9"));
  EXPECT_FALSE(MatchesPattern("[a-z]", "\xe9"));
}

TEST(Patterns, ManyStarsAreMatchedInTime) {
  std::string pattern, path(3'000, 'a');
  for (int i = 0; i < 1'000; ++i) pattern += "*a";
  EXPECT_TRUE(MatchesPattern(pattern, path));
  EXPECT_FALSE(MatchesPattern(pattern + "b", path));
}

TEST(Patterns, ChooseEntries) {
  EXPECT_TRUE(IsWanted("a.bin", {}, {}));
  EXPECT_TRUE(IsWanted("a.json", {"*.safetensors", "*.json"}, {}));
  EXPECT_FALSE(IsWanted("a.bin", {"*.safetensors", "*.json"}, {}));
  EXPECT_FALSE(IsWanted("a.json", {"*.json"}, {"a.*"}));
  EXPECT_FALSE(IsWanted("original/a.json", {}, {"*.pth", "original/"}));
  EXPECT_TRUE(IsWanted("a.json", {}, {"*.pth", "original/"}));
}

TEST(Patterns, ChooseFolders) {
  using Words = std::vector<std::string>;
  const struct {
    Words include, ignore;
    const char* folder;
    bool may_hold;
  } rows[] = {
      {{}, {}, "a/", true},
      {{}, {"lost+found/*"}, "lost+found/", false},
      {{}, {"lost+found/"}, "lost+found/", false},
      {{}, {"lost+found*"}, "lost+found/", false},
      {{}, {"lost+found/*"}, "lost+found/#1/", false},
      {{}, {"*"}, "a/", false},
      {{}, {"*/b/*"}, "a/b/", false},
      {{}, {"[!a]/*"}, "b/", false},
      {{}, {"lost+found"}, "lost+found/", true},     // fnmatch: "lost+found/x" is not it
      {{}, {"lost+found/?*"}, "lost+found/", true},  // may be true without need, never false by mistake
      {{}, {"a/*.txt"}, "a/", true},
      {{}, {"a/b/*"}, "a/", true},
      {{}, {"b/*"}, "a/", true},
      {{"train/*"}, {}, "train/", true},
      {{"train/*"}, {}, "train/deep/", true},
      {{"train/"}, {}, "train/", true},
      {{"train/*"}, {}, "lost+found/", false},
      {{"train/*"}, {}, "trains/", false},
      {{"train/"}, {}, "trains/", false},
      {{"train"}, {}, "train/", false},
      {{"train/a"}, {}, "train/", true},
      {{"train/a"}, {}, "train/a/", false},
      {{"train/a/b"}, {}, "train/", true},
      {{"t?ain/a"}, {}, "train/", true},
      {{"[a-s]rain/a"}, {}, "train/", false},
      {{"*.txt"}, {}, "any/", true},
      {{"a/b", "c/*"}, {}, "c/d/", true},
      {{"train/*"}, {"train/old/*"}, "train/old/", false},
      {{"caf?/x"}, {}, "caf\xc3\xa9/", true},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(MayHoldWanted(row.folder, row.include, row.ignore), row.may_hold)
        << row.folder << " by " << testing::PrintToString(row.include) << ", " << testing::PrintToString(row.ignore);
    if (row.may_hold) continue;
    for (const char* name : {"", "a", "a/b", "x.txt", "\xc3\xa9", "*", "old/x"}) {
      EXPECT_FALSE(IsWanted(std::string(row.folder) + name, row.include, row.ignore)) << row.folder << name;
    }
  }
}

}  // namespace
}  // namespace muster::initializers
