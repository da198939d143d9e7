// SPDX-License-Identifier: Apache-2.0
#include "initializers/transfer/entry_queue.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::initializers {
namespace {

bool Same(const Entry& a, const Entry& b) {
  return a.path == b.path && a.key == b.key && a.size == b.size && a.version == b.version && a.expected == b.expected &&
         a.known == b.known && a.doubted == b.doubted && a.ranges == b.ranges && a.content == b.content;
}

TEST(EntryQueue, GivesWhatItWasGiven) {
  Entry hashed;
  hashed.path = "b/c";
  hashed.key = "a/b/c";
  hashed.size = uint64_t{1} << 40;
  hashed.version = "\"etag\"";
  hashed.expected = {HashKind::kMd5, std::string(16, '\0'), 8 << 20};
  hashed.known = false;
  Entry other;
  other.path = "elsewhere";
  other.key = "key";
  other.ranges = false;
  other.doubted = true;
  other.content = std::string("a\0b", 3);
  Entry longest;
  longest.path = std::string(3072, 'p');
  longest.key = std::string(200'000, 'k');
  EntryQueue queue;
  EXPECT_TRUE(queue.empty());
  for (const Entry& entry : {hashed, other, Entry(), longest, hashed}) queue.Push(entry);
  for (const Entry& entry : {hashed, other, Entry(), longest, hashed}) {
    ASSERT_FALSE(queue.empty());
    EXPECT_EQ(queue.FrontSize(), entry.size);
    EXPECT_TRUE(Same(queue.Pop(), entry)) << entry.key.substr(0, 20);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(EntryQueue, ManyInTheirOrder) {
  EntryQueue queue;
  auto made = [](uint64_t number) {
    Entry entry;
    entry.path = fmt::format("{}", number);
    entry.key = "prefix/" + entry.path;
    entry.size = number;
    return entry;
  };
  uint64_t next = 0;
  for (uint64_t number = 0; number < 20'000; ++number) {
    queue.Push(made(number));
    if (number % 3 == 0) {
      EXPECT_TRUE(Same(queue.Pop(), made(next++)));
    }
  }
  for (; next < 20'000; ++next) {
    if (!Same(queue.Pop(), made(next))) FAIL() << next;
  }
  EXPECT_TRUE(queue.empty());
  queue.Push(made(1));
  queue.Push(made(2));
  (void)queue.Pop();
  queue.Clear();
  EXPECT_TRUE(queue.empty());
  queue.Push(made(3));
  EXPECT_TRUE(Same(queue.Pop(), made(3)));
}

}  // namespace
}  // namespace muster::initializers
