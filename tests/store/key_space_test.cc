// SPDX-License-Identifier: Apache-2.0
// The semantics of every operation as scripts: a connection's request -> its answer, and the waiters that it wakes.
#include "rendezvous/store/key_space.h"

#include <gmock/gmock.h>

#include <sstream>

#include "rendezvous/store/commands.h"
#include "tests/store/wire.h"

namespace muster::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Runs requests and returns the result as text: the answer's bytes, then " wake N" for each waiter, or "close".
class Script {
 public:
  std::string Do(WaiterId id, Op op, std::vector<std::string> args = {}, int64_t number = 0) {
    Request request;
    request.op = op;
    request.number = number;
    request.args.assign(args.begin(), args.end());
    Output output;
    const char* why = Execute(&request, id, &keys, &output);
    if (*why != 0) return std::string("close: ") + why;
    std::string told = output.bytes + std::string(output.tail);
    for (WaiterId waiter : output.woken) told += " wake " + std::to_string(waiter);
    for (const Event& event : output.events) told += " tell " + std::to_string(event.to) + " " + event.bytes;
    return told;
  }

  KeySpace keys;
};

std::string I64(int64_t number) {
  std::string bytes;
  PutNumber(&bytes, number);
  return bytes;
}
std::string Vec(std::string_view text) {
  std::string bytes;
  PutString(&bytes, text);
  return bytes;
}
const std::string kGo(1, '\0'), kNot(1, '\1'), kCancelled(1, '\1');

// The notifications of PyTorch 1.13's daemon: kind, key, value before, value afterwards.
TEST(KeySpace, WatchersAreToldOfEachChange) {
  Script s;
  auto event = [](WaiterId to, uint8_t kind, std::string_view before, std::string_view after) {
    return " tell " + std::to_string(to) + " " + std::string(1, static_cast<char>(kind)) + Vec("k") + Vec(before) +
           Vec(after);
  };
  EXPECT_EQ(s.Do(7, Op::kWatchKey, {"k"}), std::string(1, '\3'));
  EXPECT_EQ(s.Do(7, Op::kWatchKey, {"k"}), std::string(1, '\3'));  // a second time: still one event per change
  EXPECT_EQ(s.Do(1, Op::kSet, {"other", "x"}), "");
  EXPECT_EQ(s.Do(1, Op::kGet, {"k"}), Vec(""));
  EXPECT_EQ(s.Do(1, Op::kCompareSet, {"k", "x", "y"}), Vec("x"));  // nothing is stored
  EXPECT_EQ(s.Do(1, Op::kSet, {"k", "one"}), event(7, kKeyCreated, "", "one"));
  EXPECT_EQ(s.Do(1, Op::kSet, {"k", "one"}), event(7, kKeyUpdated, "one", "one"));
  EXPECT_EQ(s.Do(1, Op::kCompareSet, {"k", "x", "y"}), Vec("one"));
  EXPECT_EQ(s.Do(1, Op::kCompareSet, {"k", "one", "2"}), Vec("2") + event(7, kKeyUpdated, "one", "2"));
  EXPECT_EQ(s.Do(1, Op::kAdd, {"k"}, 3), I64(5) + event(7, kKeyUpdated, "2", "5"));
  EXPECT_EQ(s.Do(8, Op::kWatchKey, {"k"}), std::string(1, '\3'));
  EXPECT_EQ(s.Do(1, Op::kDeleteKey, {"k"}), I64(1) + event(7, kKeyDeleted, "5", "") + event(8, kKeyDeleted, "5", ""));
  EXPECT_EQ(s.Do(1, Op::kDeleteKey, {"k"}), I64(0));
  s.keys.Leave(7);
  EXPECT_EQ(s.Do(1, Op::kMultiSet, {"a", "1", "k", "2"}), event(8, kKeyCreated, "", "2"));
  EXPECT_EQ(s.Do(1, Op::kMultiSet, {"k", "3", "k", "4"}), event(8, kKeyUpdated, "2", "4"));  // one change
  s.keys.Leave(8);
  EXPECT_FALSE(s.keys.HasWatchers());
  EXPECT_EQ(s.Do(1, Op::kSet, {"k", "3"}), "");
}

TEST(KeySpace, AValueIsSetReadAndDeleted) {
  Script s;
  EXPECT_EQ(s.Do(1, Op::kGet, {"k"}), Vec(""));
  EXPECT_EQ(s.Do(1, Op::kSet, {"k", "one"}), "");
  EXPECT_EQ(s.Do(1, Op::kGet, {"k"}), Vec("one"));
  EXPECT_EQ(s.Do(1, Op::kSet, {"k", ""}), "");
  EXPECT_EQ(s.Do(1, Op::kGet, {"k"}), Vec(""));
  EXPECT_EQ(s.Do(1, Op::kGetNumKeys), I64(1));
  EXPECT_EQ(s.Do(1, Op::kCheck, {"k"}), kGo);
  EXPECT_EQ(s.Do(1, Op::kDeleteKey, {"k"}), I64(1));
  EXPECT_EQ(s.Do(1, Op::kDeleteKey, {"k"}), I64(0));
  EXPECT_EQ(s.Do(1, Op::kGetNumKeys), I64(0));
  EXPECT_EQ(s.Do(1, Op::kCheck, {"k"}), kNot);
  EXPECT_EQ(s.Do(1, Op::kPing, {}, 77), std::string("M\0\0\0", 4));
  EXPECT_EQ(s.Do(1, Op::kValidate), "");
}

TEST(KeySpace, ALargeValueIsSentFromWhereItLies) {
  Script s;
  std::string large(100'000, 'x');
  s.Do(1, Op::kSet, {"k", large});
  EXPECT_EQ(s.Do(1, Op::kGet, {"k"}), Vec(large));
  s.Do(1, Op::kSet, {"k", "small"});
  EXPECT_EQ(s.Do(1, Op::kGet, {"k"}), Vec("small"));
}

TEST(KeySpace, CompareSetChangesOnlyTheExpectedValue) {
  struct Row {
    std::optional<std::string> before;
    std::string expected, desired, answer;
    std::optional<std::string> after;
  };
  const Row rows[] = {
      {std::nullopt, "", "new", "new", "new"}, {std::nullopt, "old", "new", "old", std::nullopt},
      {"old", "old", "new", "new", "new"},     {"old", "other", "new", "old", "old"},
      {"", "", "new", "new", "new"},           {"old", "", "new", "old", "old"},
  };
  for (const Row& row : rows) {
    Script s;
    if (row.before) s.Do(1, Op::kSet, {"k", *row.before});
    EXPECT_EQ(s.Do(1, Op::kCompareSet, {"k", row.expected, row.desired}), Vec(row.answer));
    EXPECT_EQ(s.keys.Get("k"), row.after);
  }
}

TEST(KeySpace, AddKeepsDecimalText) {
  Script s;
  EXPECT_EQ(s.Do(1, Op::kAdd, {"n"}, 5), I64(5));
  EXPECT_EQ(s.Do(1, Op::kAdd, {"n"}, -7), I64(-2));
  EXPECT_EQ(*s.keys.Get("n"), "-2");
  EXPECT_EQ(s.Do(1, Op::kAdd, {"n"}, 0), I64(-2));
  s.Do(1, Op::kSet, {"n", "9223372036854775807"});
  EXPECT_EQ(s.Do(1, Op::kAdd, {"n"}, 1), I64(INT64_MIN));  // wraps, as two's complement does
}

TEST(KeySpace, CountersAreReadAsStrtollDoes) {
  struct Row {
    std::string text;
    std::optional<int64_t> number;
  };
  const std::string blanks(254, ' ');
  const Row rows[] = {{"12", 12},    {blanks + "1 ", 1}, {blanks + "123", {}},
                      {" \t12", 12}, {"+12", 12},        {"-12", -12},
                      {"12abc", 12}, {"", {}},           {"abc", {}},
                      {" ", {}},     {"+", {}},          {"-", {}},
                      {"+-3", {}},   {"--3", {}},        {"99999999999999999999", {}},
                      {"0x10", 0},   {"\n3 4", 3}};
  for (const Row& row : rows) {
    EXPECT_EQ(ReadCounter(row.text), row.number) << row.text;
    Script s;
    s.Do(1, Op::kSet, {"n", row.text});
    EXPECT_EQ(s.Do(1, Op::kAdd, {"n"}, 1).starts_with("close"), !row.number.has_value()) << row.text;
  }
}

TEST(KeySpace, AppendIsBounded) {
  Script s;
  EXPECT_EQ(s.Do(1, Op::kAppend, {"k", "ab"}), "");
  EXPECT_EQ(s.Do(1, Op::kAppend, {"k", "cd"}), "");
  EXPECT_EQ(s.Do(1, Op::kGet, {"k"}), Vec("abcd"));
  std::string large(kMaxValue, 'x');
  for (int i = 0; i < 7; ++i) EXPECT_EQ(s.Do(1, Op::kAppend, {"k", large}), "");
  EXPECT_EQ(s.Do(1, Op::kAppend, {"k", large}), "close: APPEND makes the value too long");
  EXPECT_EQ(s.keys.Get("k")->size(), 4 + 7 * kMaxValue);
}

TEST(KeySpace, SeveralKeysAreSetReadAndListed) {
  Script s;
  EXPECT_EQ(s.Do(1, Op::kWait, {"b"}), "");
  EXPECT_EQ(s.Do(2, Op::kMultiSet, {"a", "1", "b", "2"}), " wake 1");
  EXPECT_EQ(s.Do(1, Op::kMultiGet, {"b", "missing", "a"}), Vec("2") + Vec("") + Vec("1"));
  EXPECT_EQ(s.Do(1, Op::kMultiGet), "");
  s.Do(1, Op::kDeleteKey, {"b"});
  EXPECT_EQ(s.Do(1, Op::kListKeys), I64(1) + Vec("a"));
}

TEST(KeySpace, AnAnswerIsBounded) {
  Script s;
  s.Do(1, Op::kSet, {"k", std::string(kMaxValue, 'x')});
  EXPECT_EQ(s.Do(1, Op::kMultiGet, std::vector<std::string>(33, "k")), "close: the answer of MULTI_GET is too long");
}

TEST(KeySpace, WaitCountsMissingKeysAtArrival) {
  Script s;
  s.Do(9, Op::kSet, {"a", ""});
  EXPECT_EQ(s.Do(1, Op::kWait, {"a"}), kGo);
  EXPECT_EQ(s.Do(1, Op::kWait), kGo);
  EXPECT_EQ(s.Do(1, Op::kWait, {"a", "b", "c"}), "");
  EXPECT_EQ(s.Do(9, Op::kSet, {"b", ""}), "");
  EXPECT_EQ(s.Do(9, Op::kSet, {"b", ""}), "");        // counts only once
  EXPECT_EQ(s.Do(9, Op::kDeleteKey, {"b"}), I64(1));  // does not matter to the waiter
  EXPECT_EQ(s.Do(9, Op::kSet, {"c", ""}), " wake 1");
  EXPECT_EQ(s.keys.waiters(), 0u);
}

TEST(KeySpace, EachKindOfChangeWakes) {
  struct Row {
    Op op;
    std::vector<std::string> args;
    std::string told;
  };
  const Row rows[] = {
      {Op::kSet, {"k", "v"}, " wake 1 wake 2"},
      {Op::kAdd, {"k"}, I64(0) + " wake 1 wake 2"},
      {Op::kAppend, {"k", "v"}, " wake 1 wake 2"},
      {Op::kMultiSet, {"k", "v"}, " wake 1 wake 2"},
      {Op::kCompareSet, {"k", "", "v"}, Vec("v") + " wake 1 wake 2"},
      {Op::kCompareSet, {"k", "old", "v"}, Vec("old")},  // nothing stored, nobody woken
      {Op::kQueuePush, {"k", "v"}, " wake 1"},
      {Op::kGet, {"k"}, Vec("")},
      {Op::kDeleteKey, {"k"}, I64(0)},
  };
  for (const Row& row : rows) {
    Script s;
    EXPECT_EQ(s.Do(1, Op::kWait, {"k"}), "");
    EXPECT_EQ(s.Do(2, Op::kWait, {"k", "k"}), "");
    EXPECT_EQ(s.Do(3, row.op, row.args), row.told);
  }
}

TEST(KeySpace, ACancelledOrForgottenWaitIsNotWoken) {
  Script s;
  EXPECT_EQ(s.Do(1, Op::kCancelWait), kCancelled);  // nothing to cancel: still answered
  s.Do(1, Op::kWait, {"a", "b", "c"});
  s.Do(2, Op::kWait, {"a"});
  s.Do(9, Op::kSet, {"b", ""});
  EXPECT_EQ(s.Do(1, Op::kCancelWait), kCancelled);
  s.keys.Forget(77);
  EXPECT_EQ(s.Do(9, Op::kSet, {"a", ""}), " wake 2");
  EXPECT_EQ(s.Do(9, Op::kSet, {"c", ""}), "");
  EXPECT_EQ(s.Do(9, Op::kGetNumKeys), I64(3));
}

TEST(KeySpace, ANewerWaitTakesTheOlderOnesPlace) {
  Script s;
  s.Do(1, Op::kWait, {"a"});
  s.Do(1, Op::kWait, {"b"});
  EXPECT_EQ(s.Do(9, Op::kSet, {"a", ""}), "");
  EXPECT_EQ(s.Do(9, Op::kSet, {"b", ""}), " wake 1");
}

TEST(KeySpace, APopGivesTheValuesOfAQueueInOrder) {
  Script s;
  EXPECT_EQ(s.Do(1, Op::kQueuePop, {"q"}), I64(0));
  EXPECT_EQ(s.Do(1, Op::kQueueLen, {"q"}), I64(0));
  s.Do(1, Op::kWait, {"q"});
  s.Do(2, Op::kWait, {"q"});
  EXPECT_EQ(s.Do(9, Op::kQueuePush, {"q", "one"}), " wake 1");
  EXPECT_EQ(s.Do(9, Op::kQueuePush, {"q", "two"}), " wake 2");
  EXPECT_EQ(s.Do(3, Op::kWait, {"q"}), kGo);
  EXPECT_EQ(s.Do(3, Op::kCheck, {"q"}), kGo);
  EXPECT_EQ(s.Do(3, Op::kGetNumKeys), I64(0));
  EXPECT_EQ(s.Do(3, Op::kQueueLen, {"q"}), I64(2));
  EXPECT_EQ(s.Do(1, Op::kQueuePop, {"q"}), I64(2) + Vec("one"));
  EXPECT_EQ(s.Do(1, Op::kQueuePop, {"q"}), I64(1) + Vec("two"));
  EXPECT_EQ(s.Do(1, Op::kQueuePop, {"q"}), I64(0));
  EXPECT_EQ(s.Do(1, Op::kCheck, {"q"}), kNot);
}

TEST(KeySpace, APushWakesTheFirstWhoWaitsForNothingElse) {
  Script s;
  s.Do(1, Op::kWait, {"q", "other"});
  s.Do(2, Op::kWait, {"q"});
  EXPECT_EQ(s.Do(9, Op::kQueuePush, {"q", "v"}), " wake 2");
  EXPECT_EQ(s.Do(9, Op::kSet, {"other", ""}), " wake 1");
}

TEST(KeySpace, TheLastArrivalOpensABarrier) {
  Script s;
  EXPECT_EQ(s.Do(1, Op::kBarrier, {"b"}, 3), "");
  EXPECT_EQ(s.Do(2, Op::kBarrier, {"b"}, 3), "");
  EXPECT_EQ(*s.keys.Get("b"), "2");
  EXPECT_EQ(s.Do(3, Op::kBarrier, {"b"}, 3), kGo + " wake 1 wake 2");
  EXPECT_EQ(s.Do(4, Op::kBarrier, {"b"}, 3), kGo);  // a late arrival passes
  EXPECT_EQ(s.Do(5, Op::kBarrier, {"of one"}, 1), kGo);
  s.Do(9, Op::kSet, {"text", "abc"});
  EXPECT_EQ(s.Do(5, Op::kBarrier, {"text"}, 2), "close: BARRIER on a value that is not a number");
  EXPECT_EQ(s.Do(6, Op::kBarrier, {"c"}, 2), "");
  EXPECT_EQ(s.Do(6, Op::kCancelWait), kCancelled);
  EXPECT_EQ(s.Do(7, Op::kBarrier, {"c"}, 2), kGo);  // the cancelled arrival still counts
}

TEST(KeySpace, WaitersOfOneKeyLeaveInAnyOrderAtOnce) {
  KeySpace keys;
  std::string_view key[] = {"k"};
  for (WaiterId id = 0; id < 200'000; ++id) EXPECT_FALSE(keys.Wait(id, key));
  for (WaiterId id = 200'000; id-- > 1;) keys.Forget(id);  // each in constant time, or this takes minutes
  Woken woken;
  keys.Set("k", "", &woken);
  EXPECT_THAT(woken, ElementsAre(0u));
}

TEST(KeySpace, NamesWaitedForInVainLeaveNothing) {
  KeySpace keys;
  for (int i = 0; i < 1000; ++i) {
    std::string name = "key" + std::to_string(i);
    std::string_view key[] = {name};
    keys.Wait(1, key);
  }
  keys.Forget(1);
  std::vector<std::string> names;
  keys.ForEachKey([&](std::string_view name) { names.emplace_back(name); });
  EXPECT_THAT(names, IsEmpty());
  EXPECT_EQ(keys.size(), 0);
}

}  // namespace
}  // namespace muster::store
