// SPDX-License-Identifier: Apache-2.0
#include "base/termination_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <map>
#include <sstream>

#include "base/text.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

std::string Encode(const TerminationMessage& message, size_t limit = kMaxTerminationMessage) {
  return EncodeTerminationMessage(message, limit);
}

TerminationMessage Parsed(std::string_view line) {
  auto message = ParseTerminationMessage(line);
  EXPECT_TRUE(message.ok()) << message.status() << "\n" << line;
  return message.ok() ? *message : TerminationMessage{};
}

// A message with every field set, short enough to need no cut.
TerminationMessage Full() {
  WorkerFailure cause{.node = "train-node-0-1",
                      .host = "ip-10-0-0-7",
                      .rank = 11,
                      .local_rank = 3,
                      .pid = 4242,
                      .exit_code = 137,
                      .signal = 9,
                      .core_dumped = true,
                      .oom_killed = true,
                      .consequence = true,
                      .message = "RuntimeError: CUDA error",
                      .error_file = "/logs/r/attempt_0/3/error.json",
                      .stderr_tail = {"older", "newer"},
                      .stderr_reason = "it broke",
                      .unix_millis = 1700000000123};
  return {.exit_code = 137,
          .exit_class = ExitClass::kRetryable,
          .reason = "rank 11 on train-node-0-1 was killed by SIGKILL: out of memory",
          .run_id = "train",
          .node = "train-node-0-0",
          .host = "ip-10-0-0-6",
          .node_rank = 0,
          .round = 7,
          .restart_count = 2,
          .max_restarts = 3,
          .budget_used = true,
          .inner_exit_code = 0,
          .cause = cause,
          .time = RunTime{1700000000000, {1500ms, 12s, 600s, 0s, 0s, 7s}},
          .training = TrainingFacts{
              .rank = 2, .position = 320, .end = 640, .epoch = 0.5, .loss = 0.25, .step_time = 250ms, .left = 80s}};
}

TEST(TerminationMessage, HasEachFieldUnderItsName) {
  EXPECT_EQ(
      Encode(Full()),
      R"({"version":1,"exit_code":137,"class":"retryable",)"
      R"("reason":"rank 11 on train-node-0-1 was killed by SIGKILL: out of memory",)"
      R"("run_id":"train","node":"train-node-0-0","host":"ip-10-0-0-6","node_rank":0,"round":7,)"
      R"("restart_count":2,"max_restarts":3,"budget_used":true,"inner_exit_code":0,"cause":{"rank":11,"local_rank":3,"node":"train-node-0-1",)"
      R"("host":"ip-10-0-0-7","pid":4242,"exit_code":137,"signal":"SIGKILL","core_dumped":true,)"
      R"("oom_killed":true,"consequence":true,"ended_unix_ms":1700000000123,)"
      R"("error_message":"RuntimeError: CUDA error","error_file":"/logs/r/attempt_0/3/error.json","stderr_reason":"it broke",)"
      R"("stderr_tail":["older","newer"]},"began_unix_ms":1700000000000,)"
      R"("seconds":{"waiting":1.5,"start":12.0,"training":600.0,"redone":0.0,"hang":0.0,"restart":7.0},)"
      R"("training":{"rank":2,"unit":"steps","position":320.0,"end":640.0,"epoch":0.5,"loss":0.25,"step_seconds":0.25,"left_seconds":80.0}})");
  EXPECT_EQ(Parsed(Encode(Full())), Full());
}

TEST(TerminationMessage, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(Encode({}), R"({"version":1,"exit_code":0,"class":"success"})");
  TerminationMessage message{.exit_code = 3, .exit_class = ExitClass::kFatal, .cause = WorkerFailure{.exit_code = 3}};
  EXPECT_EQ(Encode(message), R"({"version":1,"exit_code":3,"class":"fatal","cause":{"exit_code":3}})");
  EXPECT_EQ(Parsed(Encode(message)), message);
  EXPECT_EQ(Parsed(Encode({})), TerminationMessage{});
}

TEST(TerminationMessage, NamesSignals) {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    TerminationMessage message{.cause = WorkerFailure{.exit_code = 128 + signal, .signal = signal}};
    EXPECT_EQ(Parsed(Encode(message)), message) << signal;
  }
}

// Encode writes the examples of the page, and each class has an example.
TEST(TerminationMessage, ExamplesOfTheDocumentationAreReal) {
  std::ifstream page("docs/termination-message.md");
  std::map<int, ExitClass> classes;
  TerminationMessage fatal;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("{")) continue;
    TerminationMessage message = Parsed(line);
    EXPECT_FALSE(message.reason.empty()) << line;
    if (message.truncated) {
      EXPECT_EQ(Encode(fatal, 256), line);
      continue;
    }
    EXPECT_EQ(Encode(message), line);
    classes[message.exit_code] = message.exit_class;
    if (message.exit_class == ExitClass::kFatal) fatal = message;
  }
  EXPECT_THAT(classes, ElementsAre(std::pair(0, ExitClass::kSuccess), std::pair(1, ExitClass::kFatal),
                                   std::pair(137, ExitClass::kRetryable), std::pair(139, ExitClass::kRetryable),
                                   std::pair(143, ExitClass::kRetryable), std::pair(200, ExitClass::kRetryable),
                                   std::pair(203, ExitClass::kRetryable)));
}

// ---- Bytes of a worker ----

TEST(TerminationMessage, AnyBytesOfAWorkerAreOneLineOfValidJson) {
  struct Row {
    std::string raw;
    std::string in_json;
    std::string read_back;
  };
  const std::string nul("a\0b", 3);
  for (const Row& row : {
           Row{"say \"no\" \\ /", R"(say \"no\" \\ /)", "say \"no\" \\ /"},
           Row{"a\nb\r\nc\t\b\f", R"(a\nb\r\nc\t\b\f)", "a\nb\r\nc\t\b\f"},
           Row{nul, R"(a\u0000b)", nul},
           Row{"\x1b[31mred\x7f", "\\u001b[31mred\x7f", "\x1b[31mred\x7f"},
           Row{"h\xc3\xa9 \xf0\x9f\x92\xa5", "h\xc3\xa9 \xf0\x9f\x92\xa5", "h\xc3\xa9 \xf0\x9f\x92\xa5"},
           Row{"\xff\xfe", "\uFFFD\uFFFD", "\uFFFD\uFFFD"},
           Row{"cut \xe2\x82", "cut \uFFFD", "cut \uFFFD"},
           Row{"\xc0\xaf", "\uFFFD\uFFFD", "\uFFFD\uFFFD"},                  // overlong
           Row{"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD", "\uFFFD\uFFFD\uFFFD"},  // half a surrogate pair
           Row{"\xc3(", "\uFFFD(", "\uFFFD("},
       }) {
    TerminationMessage message = Full();
    message.reason = message.cause->message = row.raw;
    message.cause->stderr_tail = {row.raw};
    std::string line = Encode(message);
    EXPECT_THAT(line, HasSubstr("\"reason\":\"" + row.in_json + "\""));
    EXPECT_EQ(line.find('\n'), std::string::npos);
    TerminationMessage back = Parsed(line);
    EXPECT_EQ(back.reason, row.read_back);
    EXPECT_EQ(back.cause->message, row.read_back);
    EXPECT_THAT(back.cause->stderr_tail, ElementsAre(row.read_back));
    EXPECT_FALSE(back.truncated);
  }
}

// ---- What does not fit ----

TEST(TerminationMessage, OldestLinesGoFirst) {
  TerminationMessage message = Full();
  message.cause->stderr_tail.clear();
  for (int i = 0; i < 20; ++i) message.cause->stderr_tail.push_back(fmt::format("{:02} {}", i, std::string(500, 'x')));
  TerminationMessage back = Parsed(Encode(message));
  EXPECT_TRUE(back.truncated);
  EXPECT_GE(back.cause->stderr_tail.size(), 5u);
  std::vector<std::string> newest(message.cause->stderr_tail.end() - back.cause->stderr_tail.size(),
                                  message.cause->stderr_tail.end());
  EXPECT_EQ(back.cause->stderr_tail, newest);
  back.cause->stderr_tail.clear();
  back.truncated = false;
  message.cause->stderr_tail.clear();
  EXPECT_EQ(back, message) << "nothing else was cut";
}

TEST(TerminationMessage, TwentyLongLinesKeepTheNewest) {
  for (const std::string& stuff : {std::string(2048, 'y'), std::string(2048, '\1'), std::string(2048, '\xff')}) {
    TerminationMessage message = Full();
    message.cause->stderr_tail.assign(20, stuff);
    std::string line = Encode(message);
    EXPECT_LE(line.size(), 4096u);
    EXPECT_GE(line.size(), 2048u);
    TerminationMessage back = Parsed(line);
    ASSERT_EQ(back.cause->stderr_tail.size(), 1u);
    EXPECT_EQ(back.cause->message, message.cause->message);
    EXPECT_EQ(back.reason, message.reason);
  }
}

TEST(TerminationMessage, TracebackKeepsItsFirstAndLastLines) {
  TerminationMessage message = Full();
  std::string& text = message.cause->message;
  text = "Traceback (most recent call last):\n";
  while (text.size() < (1 << 20)) text += fmt::format("  File \"train.py\", line {}, in step\n", text.size());
  text += "    loss.backward()\nRuntimeError: CUDA error: an illegal memory access\n";
  std::string line = Encode(message);
  EXPECT_LE(line.size(), 4096u);
  EXPECT_GE(line.size(), 4000u);
  TerminationMessage back = Parsed(line);
  EXPECT_TRUE(back.truncated);
  EXPECT_THAT(back.cause->message,
              StartsWith("Traceback (most recent call last):\n\u2026\n  File \"train.py\", line "));
  EXPECT_THAT(back.cause->message,
              EndsWith("in step\n    loss.backward()\nRuntimeError: CUDA error: an illegal memory access"));
  EXPECT_THAT(back.cause->stderr_tail, ElementsAre("newer"));
  EXPECT_EQ(back.cause->error_file, message.cause->error_file);
  EXPECT_EQ(back.reason, message.reason);
}

TEST(TerminationMessage, OneLongLineKeepsItsBeginning) {
  for (std::string piece : {"x", "\"", "\1", "\u20ac", "\U0001F4A5", "\xff", "\r."}) {
    TerminationMessage message = Full();
    message.cause->message = "ValueError: ";
    while (message.cause->message.size() < (1 << 20)) message.cause->message += piece;
    std::string line = Encode(message);
    EXPECT_LE(line.size(), 4096u);
    EXPECT_GE(line.size(), 4080u) << piece;
    TerminationMessage back = Parsed(line);
    EXPECT_THAT(back.cause->message, StartsWith("ValueError: "));
    EXPECT_THAT(back.cause->message, EndsWith("\u2026"));
  }
}

TEST(TerminationMessage, AnEndlessReasonLeavesRoomForTheCause) {
  TerminationMessage message = Full();
  message.reason = std::string(100'000, 'r');
  TerminationMessage back = Parsed(Encode(message));
  EXPECT_EQ(back.cause->message, message.cause->message);
  EXPECT_GE(back.reason.size(), 3000u);
  EXPECT_EQ(back.cause->host, message.cause->host);
}

TEST(TerminationMessage, EachLimitHoldsWhateverThereIs) {
  TerminationMessage long_texts = Full();
  long_texts.reason = std::string(5000, 'r');
  long_texts.node = long_texts.host = long_texts.run_id = long_texts.cause->node = std::string(253, 'n');
  long_texts.cause->message = "first\n" + std::string(3000, '"') + "\nlast \u20ac\u20ac\u20ac";
  long_texts.cause->stderr_tail.assign(20, std::string(300, '\xe2'));
  TerminationMessage numbers = Full();
  numbers.node_rank = numbers.restart_count = numbers.max_restarts = INT32_MIN;
  numbers.round = numbers.cause->pid = numbers.cause->unix_millis = INT64_MIN;
  numbers.cause->rank = numbers.cause->local_rank = INT32_MIN;
  const TerminationMessage short_texts = Full();
  for (const TerminationMessage* each : std::vector<const TerminationMessage*>{&short_texts, &long_texts, &numbers}) {
    const TerminationMessage& message = *each;
    for (size_t limit = kMinTerminationMessage; limit <= kMaxTerminationMessage; limit += limit < 400 ? 1 : 37) {
      std::string line = Encode(message, limit);
      ASSERT_LE(line.size(), limit);
      TerminationMessage back = Parsed(line);
      ASSERT_EQ(back.truncated, line != Encode(message, SIZE_MAX));
      ASSERT_EQ(back.exit_code, 137);
      ASSERT_EQ(back.exit_class, ExitClass::kRetryable);
      // Encoding a cut message again changes nothing.
      ASSERT_EQ(Encode(back, limit), line);
      if (limit >= 256 && each != &numbers) {
        ASSERT_NE(back.reason, "") << limit;
        ASSERT_EQ(back.round, 7) << limit;
      }
    }
  }
  EXPECT_LE(Encode(numbers, 0).size(), kMinTerminationMessage);
}

// The order that the header gives: a field stays whole until all fields before it are dropped or at their minimum.
TEST(TerminationMessage, IsCutInTheDocumentedOrder) {
  TerminationMessage message = Full();
  message.reason = std::string(400, 'r');
  message.cause->message = "first\n" + std::string(600, 'm') + "\nlast";
  struct Cut {
    const char* what;
    bool (*whole)(const TerminationMessage&, const TerminationMessage&);
  };
  const std::vector<Cut> order = {
      {"stderr_tail", [](auto& a, auto& b) { return a.cause && a.cause->stderr_tail == b.cause->stderr_tail; }},
      {"error_message", [](auto& a, auto& b) { return a.cause && a.cause->message == b.cause->message; }},
      {"error_file", [](auto& a, auto& b) { return a.cause && a.cause->error_file == b.cause->error_file; }},
      {"reason", [](auto& a, auto& b) { return a.reason == b.reason; }},
      {"training", [](auto& a, auto& b) { return a.training == b.training; }},
      {"time", [](auto& a, auto& b) { return a.time == b.time; }},
      {"stderr_reason", [](auto& a, auto& b) { return a.cause && a.cause->stderr_reason == b.cause->stderr_reason; }},
      {"ended", [](auto& a, auto& b) { return a.cause && a.cause->unix_millis == b.cause->unix_millis; }},
      {"pid", [](auto& a, auto& b) { return a.cause && a.cause->pid == b.cause->pid; }},
      {"cause.host", [](auto& a, auto& b) { return a.cause && a.cause->host == b.cause->host; }},
      {"host", [](auto& a, auto& b) { return a.host == b.host; }},
      {"run_id", [](auto& a, auto& b) { return a.run_id == b.run_id; }},
      {"node", [](auto& a, auto& b) { return a.node == b.node; }},
      {"cause.node", [](auto& a, auto& b) { return a.cause && a.cause->node == b.cause->node; }},
      {"cause", [](auto& a, auto&) { return a.cause.has_value(); }},
      {"node_rank", [](auto& a, auto& b) { return a.node_rank == b.node_rank; }},
      {"round", [](auto& a, auto& b) { return a.round == b.round; }},
      {"restart_count", [](auto& a, auto& b) { return a.restart_count == b.restart_count; }},
      {"max_restarts", [](auto& a, auto& b) { return a.max_restarts == b.max_restarts; }},
      {"budget_used", [](auto& a, auto& b) { return a.budget_used == b.budget_used; }},
      {"inner_exit_code", [](auto& a, auto& b) { return a.inner_exit_code == b.inner_exit_code; }},
  };
  size_t most_cut = 0;
  for (size_t limit = 2000; limit >= kMinTerminationMessage; limit -= 3) {
    TerminationMessage back = Parsed(Encode(message, limit));
    bool whole_seen = false;
    size_t cut = 0;
    for (const Cut& field : order) {
      bool whole = field.whole(back, message);
      if (!whole) {
        EXPECT_FALSE(whole_seen) << field.what << " was cut too early at " << limit;
        ++cut;
      }
      // The reason stays whole while it fits into a quarter of the limit, even if later fields are dropped.
      whole_seen |= whole && std::string_view(field.what) != "reason";
    }
    EXPECT_GE(cut, most_cut) << limit;
    most_cut = cut;
  }
  EXPECT_GE(most_cut, 12u);
}

// ---- Parsing ----

TEST(TerminationMessage, WhatANewerVersionNestsIsLeftOut) {
  const std::string deep = std::string(30'000, '[') + std::string(30'000, ']');
  auto message = ParseTerminationMessage(
      fmt::format(R"({{"version":2,"exit_code":1,"class":"fatal","reason":null,"x":{{"y":{}}},"node":"a"}})", deep));
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->version, 2);
  EXPECT_EQ(message->reason, "");
  EXPECT_EQ(message->node, "a");
}

TEST(TerminationMessage, WrongTextsNameTheKey) {
  struct Row {
    std::string text;
    std::string said;
  };
  auto with = [](std::string_view more) {
    return fmt::format(R"({{"version":1,"exit_code":1,"class":"fatal",{}}})", more);
  };
  for (const Row& row : {
           Row{"", "not a JSON object"},
           Row{"killed", "not a JSON object"},
           Row{"[]", "not a JSON object"},
           Row{"{\"version\":1,", "not a JSON object"},
           Row{"{} {}", "not a JSON object"},
           Row{"{}", "'version' is not there"},
           Row{R"({"message":{"message":"x"}})", "'version' is not there"},
           Row{R"({"version":1,"class":"fatal"})", "'exit_code' is not there"},
           Row{R"({"version":1,"exit_code":1})", "'class' is not there"},
           Row{R"({"version":0,"exit_code":1,"class":"fatal"})", "'version'"},
           Row{R"({"version":"1","exit_code":1,"class":"fatal"})", "'version'"},
           Row{R"({"version":1,"exit_code":256,"class":"fatal"})", "'exit_code' is not a whole number from 0 to 255"},
           Row{R"({"version":1,"exit_code":-1,"class":"fatal"})", "'exit_code'"},
           Row{R"({"version":1,"exit_code":1.0,"class":"fatal"})", "'exit_code'"},
           Row{R"({"version":1,"exit_code":1,"class":"Fatal"})", "'class' is not success, fatal or retryable"},
           Row{R"({"version":1,"exit_code":1,"class":2})", "'class'"},
           Row{R"({"version":1,"exit_code":null,"class":"fatal"})", "'exit_code' is not there"},
           Row{with(R"("run_id":1)"), "'run_id'"},
           Row{with(R"("node":[])"), "'node'"},
           Row{with(R"("host":{})"), "'host'"},
           Row{with(R"("node_rank":2147483648)"), "'node_rank'"},
           Row{with(R"("round":9223372036854775808)"), "'round'"},
           Row{with(R"("round":1e99)"), "'round'"},
           Row{with(R"("restart_count":"1")"), "'restart_count'"},
           Row{with(R"("max_restarts":true)"), "'max_restarts'"},
           Row{with(R"("inner_exit_code":256)"), "'inner_exit_code'"},
           Row{with(R"("truncated":1)"), "'truncated' is not true or false"},
           Row{with(R"("cause":"x")"), "cause: not an object"},
           Row{with(R"("cause":{"rank":"0"})"), "cause: 'rank'"},
           Row{with(R"("cause":{"exit_code":300})"), "cause: 'exit_code'"},
           Row{with(R"("cause":{"signal":9})"), "cause: 'signal'"},
           Row{with(R"("cause":{"signal":"SIGNOT"})"), "cause: 'signal' is not a signal"},
           Row{with(R"("cause":{"signal":"signal 128"})"), "cause: 'signal' is not a signal"},
           Row{with(R"("cause":{"oom_killed":"no"})"), "cause: 'oom_killed'"},
           Row{with(R"("cause":{"stderr_tail":"x"})"), "cause: 'stderr_tail' is not a list of texts"},
           Row{with(R"("cause":{"stderr_tail":["x",1]})"), "cause: 'stderr_tail' is not a list of texts"},
           Row{with(R"("training":5)"), "training: not an object"},
           Row{with(R"("training":{"position":-1})"), "training: 'position'"},
           Row{with(R"("training":{"left_seconds":1e300})"), "training: 'left_seconds'"},
           Row{with(R"("began_unix_ms":1,"seconds":[])"), "seconds: not an object"},
           Row{with(R"("began_unix_ms":1,"seconds":{"hang":-1})"), "seconds: 'hang'"},
           Row{with(R"("began_unix_ms":-1,"seconds":{})"), "'began_unix_ms'"},
           Row{with(R"("began_unix_ms":1.5,"seconds":{})"), "'began_unix_ms'"},
           Row{with("\"reason\":\"\xff\""), "not a JSON object"},
           Row{with("\"x\":" + std::string(70'000, ' ') + "1"), "longer than 65536 bytes"},
           Row{with("\"x\":" + std::string(60'000, '[')), "not a JSON object"},
       }) {
    auto message = ParseTerminationMessage(row.text);
    ASSERT_FALSE(message.ok()) << row.text;
    EXPECT_TRUE(absl::IsInvalidArgument(message.status()));
    EXPECT_THAT(std::string(Message(message.status())), HasSubstr(row.said)) << row.text.substr(0, 200);
  }
}

TEST(TerminationMessage, NewerVersionsAreReadForWhatIsKnown) {
  TerminationMessage message = Parsed(
      " {\"version\":2,\"exit_code\":1,\"class\":\"fatal\",\"colour\":{\"of\":[[1,\"]]]]\\\"[[[[[[[[\"]]},"
      "\"cause\":{\"gpu\":\"XID 79\",\"rank\":5}}\n");
  EXPECT_EQ(message,
            (TerminationMessage{
                .version = 2, .exit_code = 1, .exit_class = ExitClass::kFatal, .cause = WorkerFailure{.rank = 5}}));
}

TEST(TerminationMessage, KeepsTheNewestTwentyLines) {
  TerminationMessage message = Full();
  for (int i = 0; i < 30; ++i) message.cause->stderr_tail.push_back(fmt::format("{}", i));
  auto tail = Parsed(Encode(message)).cause->stderr_tail;
  EXPECT_EQ(tail.size(), 20u);
  EXPECT_EQ(tail.front(), "10");
  EXPECT_EQ(tail.back(), "29");
}

}  // namespace
}  // namespace muster
