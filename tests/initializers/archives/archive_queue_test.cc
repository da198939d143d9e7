// SPDX-License-Identifier: Apache-2.0
#include "initializers/archives/archive_queue.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace muster::initializers {
namespace {

// Runs a script like "a b.zst | -a c": archives arrive, and with '-' end. Returns what begins: "a b.zst | c".
std::string Begun(size_t at_once, std::string_view script) {
  ArchiveQueue queue(at_once);
  std::vector<std::string> parts;
  size_t left = 0;
  for (std::string_view part : Split(script, '|')) {
    for (std::string_view word : Split(Strip(part), ' ')) {
      MovedFile archive;
      archive.entry.path = fmt::format("{}.tar", word.substr(word.starts_with('-') ? 1 : 0));
      if (archive.entry.path.ends_with(".zst.tar"))
        archive.entry.path.replace(archive.entry.path.size() - 8, 8, ".tzst");
      if (word.starts_with('-')) {
        queue.End(archive);
        --left;
      } else {
        queue.Add(archive);
        ++left;
      }
    }
    std::vector<std::string> begun;
    while (const auto next = queue.Begin()) begun.push_back(next->entry.path.substr(0, next->entry.path.find('.')));
    parts.push_back(Join(begun, " "));
    EXPECT_EQ(queue.idle(), left == 0) << script;
  }
  return Join(parts, " | ");
}

TEST(ArchiveQueue, BeginsWhatMay) {
  const struct {
    size_t at_once;
    std::string_view script, begun;
  } rows[] = {
      {2, "a b c d | -b | -a | -c -d", "a b | c | d | "},
      {2, "a b | -a | c | -b -c", "a b |  | c | "},  // c takes the place of a and does not wait for b
      {1, "a b.zst c | -a | -b.zst | -c", "a | b | c | "},
      {4, "a.zst b.zst c.zst d | -b.zst | -d", "a b d | c | "},
      {4, "a b.zst | c.zst | -a d.zst e | -b.zst", "a b | c | e | d"},  // the end of a frees no place for d.zst
      {3, "a.zst b.zst c.zst d e | -d | -a.zst | -e", "a b d | e | c | "},
      {2, "a.zst b.zst c.zst | d | -a.zst | -b.zst", "a b |  | c | d"},
  };
  for (const auto& row : rows) EXPECT_EQ(Begun(row.at_once, row.script), row.begun) << row.script;
}

TEST(ArchiveQueue, ForgetsThoseThatWait) {
  ArchiveQueue queue(1);
  for (const char* path : {"a.tar", "b.tar", "c.tzst"}) queue.Add(MovedFile{.entry = {.path = path}});
  const auto going = queue.Begin();
  ASSERT_TRUE(going.has_value());
  queue.Clear();
  EXPECT_FALSE(queue.idle());
  queue.End(*going);
  EXPECT_FALSE(queue.Begin().has_value());
  EXPECT_TRUE(queue.idle());
}

}  // namespace
}  // namespace muster::initializers
