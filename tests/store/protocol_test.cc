// SPDX-License-Identifier: Apache-2.0
// Byte vectors of each generation, cut into pieces in every way.
#include "rendezvous/store/protocol.h"

#include <gmock/gmock.h>

#include "tests/store/wire.h"

namespace muster::store {
namespace {

using testing::ElementsAre;

// Feeds `bytes` in pieces of `step` and returns the requests as text.
std::vector<std::string> Parse(std::string_view bytes, size_t step, Parser* parser, std::string* why = nullptr) {
  std::vector<std::string> requests;
  Request request;
  while (!bytes.empty()) {
    std::string piece(bytes.substr(0, step));  // a copy, so that asan finds a view that is kept too long
    bytes.remove_prefix(piece.size());
    std::string_view input = piece;
    for (;;) {
      Parser::Result result = parser->Next(&input, &request);
      if (result == Parser::Result::kNeedMore) break;
      if (result == Parser::Result::kForeign) {
        requests.push_back("foreign");
        return requests;
      }
      if (result == Parser::Result::kViolation) {
        requests.push_back("violation");
        if (why != nullptr) *why = request.why;
        return requests;
      }
      requests.push_back(Describe(request));
    }
    EXPECT_TRUE(input.empty());
  }
  return requests;
}

const char kHello[] = "00 CEF7853C 0D 2A000000 ";

struct Vector {
  const char* name;
  const char* hex;
  std::vector<std::string> requests;
  Generation generation;
};

const Vector kVectors[] = {
    {"validate and ping", "00 CEF7853C 0D 2A000000", {"VALIDATE 1015412686", "PING 42"}, Generation::kC},
    {"add init",
     "00 CEF7853C 04 0500000000000000 696E69742F 0100000000000000",
     {"VALIDATE 1015412686", "ADD init/ 1"},
     Generation::kC},
    {"set",
     "00 CEF7853C 01 0200000000000000 2F61 0100000000000000 62",
     {"VALIDATE 1015412686", "SET /a b"},
     Generation::kC},
    {"wait",
     "00 CEF7853C 06 0100000000000000 0200000000000000 2F61",
     {"VALIDATE 1015412686", "WAIT /a"},
     Generation::kC},
    {"every op of C",
     "00 CEF7853C "
     "02 0100000000000000 6B 0100000000000000 65 0100000000000000 64 "
     "03 0100000000000000 6B "
     "05 0200000000000000 0100000000000000 61 0100000000000000 62 "
     "07 "
     "08 0100000000000000 6B "
     "09 0100000000000000 6B 0100000000000000 76 "
     "0A 0200000000000000 0100000000000000 61 0100000000000000 62 "
     "0B 0200000000000000 0100000000000000 61 0100000000000000 31 0100000000000000 62 0000000000000000 "
     "0C "
     "0E 0100000000000000 71 0100000000000000 76 "
     "0F 0100000000000000 71 "
     "10 0100000000000000 71 "
     "11 "
     "12 0100000000000000 62 0400000000000000",
     {"VALIDATE 1015412686", "COMPARE_SET k e d", "GET k", "CHECK a b", "GETNUMKEYS", "DELETE_KEY k", "APPEND k v",
      "MULTI_GET a b", "MULTI_SET a 1 b ", "CANCEL_WAIT", "QUEUE_PUSH q v", "QUEUE_POP q", "QUEUE_LEN q", "LIST_KEYS",
      "BARRIER b 4"},
     Generation::kC},
    {"empty lists",
     "00 CEF7853C 06 0000000000000000 0B 0000000000000000 07",
     {"VALIDATE 1015412686", "WAIT", "MULTI_SET", "GETNUMKEYS"},
     Generation::kC},
    {"old: add init", "03 0500000000000000 696E69742F 0100000000000000", {"ADD init/ 1"}, Generation::kOld},
    {"old: the shared ops",
     "00 0200000000000000 2F61 0100000000000000 62 "
     "01 0100000000000000 6B 0000000000000000 0100000000000000 64 "
     "02 0100000000000000 6B "
     "04 0100000000000000 0100000000000000 61 "
     "05 0100000000000000 0100000000000000 61 "
     "06",
     {"SET /a b", "COMPARE_SET k  d", "GET k", "CHECK a", "WAIT a", "GETNUMKEYS"},
     Generation::kOld},
    {"A: watch on the second connection", "07 0100000000000000 6B", {"WATCH_KEY k"}, Generation::kA},
    {"A: delete",
     "03 0500000000000000 696E69742F 0100000000000000 08 0100000000000000 6B",
     {"ADD init/ 1", "DELETE_KEY k"},
     Generation::kA},
    {"B: delete is 7",
     "03 0500000000000000 696E69742F 0100000000000000 07 0100000000000000 6B "
     "08 0100000000000000 6B 0100000000000000 76",
     {"ADD init/ 1", "DELETE_KEY k", "APPEND k v"},
     Generation::kB},
    {"B: its own ops",
     "03 0500000000000000 696E69742F 0100000000000000 "
     "0A 0100000000000000 0100000000000000 61 0100000000000000 31 "
     "09 0100000000000000 0100000000000000 61 "
     "0B "
     "08 0100000000000000 6B 0100000000000000 76",
     {"ADD init/ 1", "MULTI_SET a 1", "MULTI_GET a", "CANCEL_WAIT", "APPEND k v"},
     Generation::kB},
};

TEST(Protocol, VectorsOfEachGenerationInPiecesOfEachSize) {
  for (const Vector& vector : kVectors) {
    std::string bytes = Hex(vector.hex);
    for (size_t step = 1; step <= bytes.size(); ++step) {
      Parser parser;
      EXPECT_EQ(Parse(bytes, step, &parser), vector.requests) << vector.name << ", step " << step;
      EXPECT_EQ(parser.generation(), vector.generation) << vector.name << ", step " << step;
      EXPECT_FALSE(parser.HasPending()) << vector.name << ", step " << step;
    }
  }
}

TEST(Protocol, AppendOfTheSecondGenerationIsKnownByWhatFollowsTheKey) {
  Parser parser;
  EXPECT_THAT(Parse(Hex("08 0100000000000000 6B 0100000000000000 76"), 100, &parser), ElementsAre("APPEND k v"));
  EXPECT_EQ(parser.generation(), Generation::kB);
}

TEST(Protocol, AViolationIsRefusedWithItsReason) {
  struct Row {
    const char* name;
    std::string bytes;
    const char* why;
  };
  const std::string hello = Hex(kHello);
  const Row rows[] = {
      {"unknown op of C", hello + Hex("13"), "unknown opcode"},
      {"unknown op of C, far", hello + Hex("FF"), "unknown opcode"},
      {"unknown op of old", Hex("0C"), "unknown opcode of an old client"},
      {"op of B on A's second connection", Hex("07 0100000000000000 6B 09"), "unknown opcode of an old client"},
      {"garbage", "garbage", "unknown opcode of an old client"},
      {"a wrong number after a good one", hello + Hex("00 00000000"), "VALIDATE with another number"},
      {"almost VALIDATE", Hex("00 CEF7853D 00000000"), "key too long"},
      {"key too long", hello + Hex("03 0120000000000000"), "key too long"},
      {"key absurd", hello + Hex("03 FFFFFFFFFFFFFFFF"), "key too long"},
      {"value too long", hello + Hex("01 0100000000000000 6B 0100800000000000"), "value too long"},
      {"value absurd", hello + Hex("01 0100000000000000 6B FFFFFFFFFFFFFF7F"), "value too long"},
      {"too many keys", hello + Hex("06 0100020000000000"), "too many keys in one request"},
      {"a negative number of pairs", hello + Hex("0B FFFFFFFFFFFFFFFF"), "too many keys in one request"},
  };
  for (const Row& row : rows) {
    for (size_t step : {size_t{1}, size_t{3}, size_t{1000}}) {
      Parser parser;
      std::string why;
      EXPECT_EQ(Parse(row.bytes, step, &parser, &why).back(), "violation") << row.name;
      EXPECT_EQ(why, row.why) << row.name;
    }
  }
}

TEST(Protocol, ForeignFirstBytesAreLeftAlone) {
  for (std::string first : {std::string("PRI * HTTP/2.0"), Hex("16 0301")}) {
    Parser parser;
    Request request;
    std::string_view input = first;
    EXPECT_EQ(parser.Next(&input, &request), Parser::Result::kForeign);
    EXPECT_EQ(input, first);
  }
  Parser parser;  // after the first request such a byte is an unknown opcode
  EXPECT_EQ(Parse(Hex(kHello) + "P", 1, &parser).back(), "violation");
}

TEST(Protocol, TheWholeRequestIsBounded) {
  std::string value(kMaxValue, 'v');
  std::string bytes = Hex("00 CEF7853C");
  PutOp(&bytes, Op::kMultiSet);
  PutNumber<int64_t>(&bytes, 9);
  for (int i = 0; i < 9; ++i) {
    PutString(&bytes, "k");
    PutString(&bytes, value);
  }
  Parser parser;
  std::string why;
  EXPECT_EQ(Parse(bytes, 64 << 10, &parser, &why).back(), "violation");
  EXPECT_EQ(why, "request too long");
}

TEST(Protocol, ALongValueIsReceivedInPlaceAndMemoryFollowsTheBytes) {
  std::string value(5 << 20, 'v');
  std::string bytes = Hex("00 CEF7853C");
  PutOp(&bytes, Op::kSet);
  PutString(&bytes, "k");
  PutString(&bytes, value);
  bytes += Hex("07");
  Parser parser;
  Request request;
  std::string_view rest = bytes, input = rest.substr(0, 1000);
  rest.remove_prefix(1000);
  ASSERT_EQ(parser.Next(&input, &request), Parser::Result::kRequest);
  ASSERT_EQ(parser.Next(&input, &request), Parser::Result::kNeedMore);
  size_t had = 1000;
  Buffer spare;
  int steps = 0;
  for (;; ++steps) {
    std::span<char> tail = parser.Tail(&spare);
    if (tail.empty()) break;
    EXPECT_LE(tail.size(), std::max<size_t>(2 * had, 128 << 10));
    std::memcpy(tail.data(), rest.data(), tail.size());
    rest.remove_prefix(tail.size());
    had += tail.size();
    parser.Commit(tail.size());
    input = {};
    if (parser.Next(&input, &request) == Parser::Result::kRequest) break;
  }
  EXPECT_LE(steps, 12);
  EXPECT_EQ(request.op, Op::kSet);
  EXPECT_EQ(request.args[1], value);
  input = rest;
  ASSERT_EQ(parser.Next(&input, &request), Parser::Result::kRequest);
  EXPECT_EQ(request.op, Op::kGetNumKeys);
}

TEST(Protocol, ALongRequestTakesTheMemoryThatIsSpareAndComesWithIt) {
  std::string bytes;
  PutOp(&bytes, Op::kSet);
  PutString(&bytes, "k");
  PutString(&bytes, std::string(1 << 20, 'v'));
  const std::string hello = Hex("00 CEF7853C");
  Parser parser;
  Request request;
  Buffer spare;
  spare.Reserve(bytes.size());
  const char* memory = spare.data();
  std::string_view input = hello;
  ASSERT_EQ(parser.Next(&input, &request), Parser::Result::kRequest);
  EXPECT_EQ(request.bytes.capacity(), 0u);  // a short request has no memory of its own
  input = std::string_view(bytes).substr(0, 64 << 10);
  ASSERT_EQ(parser.Next(&input, &request), Parser::Result::kNeedMore);
  std::span<char> tail = parser.Tail(&spare);
  ASSERT_EQ(tail.size(), bytes.size() - (64 << 10));
  EXPECT_EQ(spare.capacity(), 0u);
  std::memcpy(tail.data(), bytes.data() + (64 << 10), tail.size());
  parser.Commit(tail.size());
  ASSERT_EQ(parser.Next(&input, &request), Parser::Result::kRequest);
  EXPECT_EQ(request.bytes.data(), memory);
  EXPECT_EQ(request.bytes.view(), bytes);
  EXPECT_EQ(request.args[1].data() + request.args[1].size(), memory + bytes.size());
  EXPECT_FALSE(parser.HasPending());
}

// One read receives all the short fields that have arrived.
TEST(Protocol, ALongRequestOfShortFieldsIsNotReceivedFieldByField) {
  std::string bytes;
  PutKeys(&bytes, Op::kMultiGet, std::vector<std::string>(10'000, "a key"));
  const std::string hello = Hex("00 CEF7853C");
  Parser parser;
  Request request;
  Buffer spare;
  std::string_view input = hello;
  ASSERT_EQ(parser.Next(&input, &request), Parser::Result::kRequest);
  input = std::string_view(bytes).substr(0, 64 << 10);
  ASSERT_EQ(parser.Next(&input, &request), Parser::Result::kNeedMore);
  EXPECT_TRUE(parser.Tail(&spare).empty());
}

TEST(Protocol, ARequestOfManyKeysInSmallPiecesIsScannedOnce) {
  // 128 Ki keys in pieces of 1440 bytes: a new scan from the start for each piece would take minutes.
  std::vector<std::string> keys(kMaxKeys, "a key of gloo's length, /default_pg/0//cpu//0/1");
  std::string bytes = Hex("00 CEF7853C");
  PutKeys(&bytes, Op::kMultiGet, keys);
  Parser parser;
  Request request;
  std::string_view rest = bytes;
  int requests = 0;
  while (!rest.empty()) {
    std::string_view input = rest.substr(0, 1440);
    rest.remove_prefix(input.size());
    while (parser.Next(&input, &request) == Parser::Result::kRequest) ++requests;
  }
  EXPECT_EQ(requests, 2);
  EXPECT_EQ(request.args.size(), kMaxKeys);
}

TEST(Protocol, KeptInputComesFirst) {
  std::string one = Hex("00 CEF7853C 07 07 03 0100000000000000"), two = Hex("6B 07");
  Parser parser;
  Request request;
  std::string_view input = one;
  ASSERT_EQ(parser.Next(&input, &request), Parser::Result::kRequest);
  parser.Keep(input);
  input = {};
  ASSERT_EQ(parser.Next(&input, &request), Parser::Result::kRequest);
  EXPECT_EQ(Describe(request), "GETNUMKEYS");
  input = two;
  std::vector<std::string> rest;
  while (parser.Next(&input, &request) == Parser::Result::kRequest) rest.push_back(Describe(request));
  EXPECT_THAT(rest, ElementsAre("GETNUMKEYS", "GET k", "GETNUMKEYS"));
  EXPECT_FALSE(parser.HasPending());
}

}  // namespace
}  // namespace muster::store
