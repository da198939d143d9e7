// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/store/value.h"

#include <gtest/gtest.h>

namespace muster::store {
namespace {

constexpr size_t kLarge = 100'000;

// The memory of a request whose last field is `value`.
Buffer Came(const std::string& value, size_t before = 20) {
  Buffer buffer;
  buffer.Append(std::string(before, '#'));
  buffer.Append(value);
  return buffer;
}

std::string_view Last(const Buffer& buffer, size_t bytes) { return buffer.view().substr(buffer.size() - bytes); }

TEST(Value, ALargeOneStaysWhereItCame) {
  const std::string text(kLarge, 'x');
  Buffer came = Came(text);
  const char* place = came.data() + 20;
  Value value;
  value.Assign(Last(came, kLarge), &came);
  EXPECT_EQ(value.view(), text);
  EXPECT_EQ(value.view().data(), place);
  EXPECT_EQ(came.capacity(), 0u);
}

TEST(Value, TheNextOneLeavesTheMemoryOfTheOneBefore) {
  Buffer first = Came(std::string(kLarge, '1')), second = Came(std::string(kLarge, '2'), 30);
  const char* memory = first.data();
  Value value;
  value.Assign(Last(first, kLarge), &first);
  value.Assign(Last(second, kLarge), &second);
  EXPECT_EQ(value.view(), std::string(kLarge, '2'));
  EXPECT_EQ(second.data(), memory);
  EXPECT_EQ(second.size(), 0u);
}

TEST(Value, WhatIsNotWorthItIsCopied) {
  struct Row {
    const char* what;
    size_t value, before;
  };
  for (const Row& row : {Row{"a small one", 1000, 20}, Row{"much else in its memory", kLarge, 3 * kLarge}}) {
    SCOPED_TRACE(row.what);
    const std::string text(row.value, 'x');
    Buffer came = Came(text, row.before);
    Value value;
    value.Assign(Last(came, row.value), &came);
    EXPECT_EQ(value.view(), text);
    EXPECT_EQ(came.size(), row.before + row.value);
  }
}

TEST(Value, ASmallOneGivesTheMemoryOfALargeOneBack) {
  Buffer came = Came(std::string(kLarge, 'x'));
  Value kept, copied;
  kept.Assign(Last(came, kLarge), &came);
  copied.Assign(std::string(kLarge, 'x'));
  for (Value* value : {&kept, &copied}) {
    value->Assign("small");
    EXPECT_EQ(value->view(), "small");
    EXPECT_LT(value->capacity(), 100u);
  }
}

TEST(Value, APartOfItselfReplacesIt) {
  Buffer came = Came(std::string(kLarge, 'x') + "end");
  Value value;
  value.Assign(Last(came, kLarge + 3), &came);
  value.Assign(value.view().substr(kLarge));
  EXPECT_EQ(value.view(), "end");
}

TEST(Value, GrowsByAppendAndGivesMemoryBackWhenCleared) {
  const std::string text(kLarge, 'x');
  Buffer came = Came(text);
  Value kept, small;
  kept.Assign(Last(came, kLarge), &came);
  kept.Append("and more");
  EXPECT_EQ(kept.view(), text + "and more");
  small.Append("a");
  small.Append("b");
  EXPECT_EQ(small.view(), "ab");
  kept.Clear();
  EXPECT_EQ(kept.view(), "");
  EXPECT_LT(kept.capacity(), 100u);
}

}  // namespace
}  // namespace muster::store
