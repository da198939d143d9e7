// SPDX-License-Identifier: Apache-2.0
// Messages of the remote shell, compared with protobuf's encoding, whole and in pieces. Wrong messages are errors.
#include "rsh/protocol.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/version.h"
#include "rsh/rsh.pb.h"

namespace muster::rsh {
namespace {

using net::FromBuffer;
using net::Joined;
using testing::HasSubstr;

// `text` in slices of these lengths; a last slice has the rest.
grpc::ByteBuffer Buffer(const std::string& text, const std::vector<size_t>& lengths = {}) {
  Bytes slices;
  size_t at = 0;
  for (size_t length : lengths) {
    slices.emplace_back(text.substr(at, length));
    at += slices.back().size();
  }
  slices.emplace_back(text.substr(at));
  return {slices.data(), slices.size()};
}

template <typename... Byte>
std::string Wire(Byte... bytes) {
  return {static_cast<char>(bytes)...};
}

std::string Error(const Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(status));
}

TEST(RshProtocol, BytesOnTheWire) {
  ASSERT_EQ(kRshProtocol, 1);
  const struct {
    grpc::ByteBuffer message;
    std::string wire;
  } rows[] = {
      {Encode(FromCaller(Open{"ls", "m"})), Wire(0x0a, 9, 8, 1, 0x12, 2, 'l', 's', 0x1a, 1, 'm')},
      {Encode(FromCaller(Input{{grpc::Slice("h"), grpc::Slice("i")}})), Wire(0x12, 2, 'h', 'i')},
      {Encode(FromCaller(Input{})), Wire(0x12, 0)},
      {Encode(FromCaller(InputEnded())), Wire(0x18, 1)},
      {Encode(FromCaller(SignalSent{15})), Wire(0x20, 15)},
      {Encode(FromPod(Started{300})), Wire(0x0a, 3, 8, 0xac, 2)},
      {Encode(FromPod(Output{false, {grpc::Slice("x")}})), Wire(0x12, 1, 'x')},
      {Encode(FromPod(Output{true, {grpc::Slice("x")}})), Wire(0x1a, 1, 'x')},
      {Encode(FromPod(InputTaken{300})), Wire(0x20, 0xac, 2)},
      {Encode(FromPod(Ended{7, "r"})), Wire(0x2a, 5, 8, 7, 0x12, 1, 'r')},
      {Encode(FromLauncher(Hello{"h"})), Wire(0x0a, 5, 8, 1, 0x12, 1, 'h')},
      {Encode(FromLauncher(Verdict{3, "v", ExitClass::kFatal})),
       Wire(0x12, 12, 8, 3, 0x12, 1, 'v', 0x1a, 5, 'f', 'a', 't', 'a', 'l')},
      {Encode(FromWorker(Welcome())), Wire(8, 1)},
      {Encode(FromWorker(Heard())), Wire(0x10, 1)},
  };
  for (const auto& row : rows) EXPECT_EQ(FromBuffer(row.message), row.wire);
}

TEST(RshProtocol, DataIsWhatProtobufWouldWrite) {
  for (size_t size :
       {size_t{0}, size_t{1}, size_t{127}, size_t{128}, size_t{16'383}, size_t{16'384}, kChunk, size_t{2'097'152}}) {
    const std::string data(size, '\xfe');
    v1::FromCaller input;
    input.set_input(data);
    EXPECT_EQ(FromBuffer(Encode(FromCaller(Input{{grpc::Slice(data)}}))), input.SerializeAsString()) << size;
    v1::FromPod err;
    err.set_err(data);
    EXPECT_EQ(FromBuffer(Encode(FromPod(Output{true, {grpc::Slice(data)}}))), err.SerializeAsString()) << size;
    v1::FromPod out;
    out.set_out(data);
    auto read = DecodeFromPod(Buffer(out.SerializeAsString()));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_FALSE(std::get<Output>(*read).err);
    EXPECT_EQ(Joined(std::get<Output>(*read).bytes), data);
  }
}

TEST(RshProtocol, EachMessageIsDecodedAsItWasEncoded) {
  auto open = DecodeFromCaller(Encode(FromCaller(Open{std::string("a\0\xff", 3), "host, pid 1"})));
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(std::get<Open>(*open).command, std::string("a\0\xff", 3));
  EXPECT_EQ(std::get<Open>(*open).caller, "host, pid 1");
  EXPECT_TRUE(std::holds_alternative<InputEnded>(*DecodeFromCaller(Encode(FromCaller(InputEnded())))));
  for (int signal : {1, 15, 64}) {
    EXPECT_EQ(std::get<SignalSent>(*DecodeFromCaller(Encode(FromCaller(SignalSent{signal})))).signal, signal);
  }
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(std::get<Started>(*DecodeFromPod(Encode(FromPod(Started{most})))).pid, most);
  const uint64_t all = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(std::get<InputTaken>(*DecodeFromPod(Encode(FromPod(InputTaken{all})))).bytes, all);
  for (int code : {0, 1, 255}) {
    auto ended = std::get<Ended>(*DecodeFromPod(Encode(FromPod(Ended{code, "why"}))));
    EXPECT_EQ(ended.exit_code, code);
    EXPECT_EQ(ended.reason, "why");
    EXPECT_EQ(std::get<Verdict>(*DecodeFromLauncher(Encode(FromLauncher(Verdict{code, ""})))).exit_code, code);
    for (ExitClass told : {ExitClass::kFatal, ExitClass::kRetryable}) {  // not always the code's usual class
      const auto verdict = DecodeFromLauncher(Encode(FromLauncher(Verdict{code, "", told})));
      EXPECT_EQ(std::get<Verdict>(*verdict).exit_class, told);
    }
  }
  // A launcher that sends no class.
  EXPECT_EQ(std::get<Verdict>(*DecodeFromLauncher(Buffer(Wire(0x12, 2, 8, 3)))).exit_class, ExitClass::kFatal);
  EXPECT_EQ(std::get<Verdict>(*DecodeFromLauncher(Buffer(Wire(0x12, 0)))).exit_class, ExitClass::kSuccess);
  EXPECT_EQ(std::get<Hello>(*DecodeFromLauncher(Encode(FromLauncher(Hello{"pod-0"})))).launcher, "pod-0");
  EXPECT_TRUE(std::holds_alternative<Welcome>(*DecodeFromWorker(Encode(FromWorker(Welcome())))));
  EXPECT_TRUE(std::holds_alternative<Heard>(*DecodeFromWorker(Encode(FromWorker(Heard())))));
}

TEST(RshProtocol, DataInPieces) {
  const std::string data = std::string(200, 'a') + std::string(100, 'b');
  const std::string wire = FromBuffer(Encode(FromCaller(Input{{grpc::Slice(data)}})));
  for (size_t cut = 0; cut <= wire.size(); ++cut) {
    auto read = DecodeFromCaller(Buffer(wire, {cut}));
    ASSERT_TRUE(read.ok()) << cut;
    ASSERT_EQ(Joined(std::get<Input>(*read).bytes), data) << cut;
  }
  auto bytewise = DecodeFromCaller(Buffer(wire, std::vector<size_t>(wire.size(), 1)));
  ASSERT_TRUE(bytewise.ok());
  EXPECT_EQ(Joined(std::get<Input>(*bytewise).bytes), data);
  const std::string open = FromBuffer(Encode(FromCaller(Open{"command", "me"})));
  for (size_t cut = 0; cut <= open.size(); ++cut) {
    auto read = DecodeFromCaller(Buffer(open, {cut, 0, 1}));
    ASSERT_TRUE(read.ok()) << cut;
    ASSERT_EQ(std::get<Open>(*read).command, "command") << cut;
  }
}

TEST(RshProtocol, NumbersOutOfRange) {
  for (int signal : {0, -1, 65, std::numeric_limits<int>::min()}) {
    v1::FromCaller wire;
    wire.set_signal(signal);
    EXPECT_THAT(Error(DecodeFromCaller(Buffer(wire.SerializeAsString())).status()), HasSubstr(std::to_string(signal)));
  }
  for (int code : {-1, 256, std::numeric_limits<int>::max()}) {
    v1::FromPod ended;
    ended.mutable_ended()->set_exit_code(code);
    EXPECT_THAT(Error(DecodeFromPod(Buffer(ended.SerializeAsString())).status()), HasSubstr(std::to_string(code)));
    v1::FromLauncher verdict;
    verdict.mutable_verdict()->set_exit_code(code);
    EXPECT_THAT(Error(DecodeFromLauncher(Buffer(verdict.SerializeAsString())).status()),
                HasSubstr(std::to_string(code)));
  }
}

TEST(RshProtocol, AnotherVersionIsNamed) {
  v1::FromCaller open;
  open.mutable_open()->set_protocol(77);
  EXPECT_THAT(Error(DecodeFromCaller(Buffer(open.SerializeAsString())).status()),
              HasSubstr(fmt::format("the caller speaks version 77 of the remote shell's protocol, this pod version {} "
                                    "(muster {}); run the same muster in every pod",
                                    kRshProtocol, Version())));
  v1::FromLauncher hello;
  hello.mutable_hello()->set_protocol(0);
  EXPECT_THAT(Error(DecodeFromLauncher(Buffer(hello.SerializeAsString())).status()), HasSubstr("speaks version 0"));
}

TEST(RshProtocol, WhatIsNoMessage) {
  const std::string unknown = "a message of the remote shell that this version does not know";
  const std::string garbage = "not a message of the remote shell";
  const struct {
    std::string wire;
    std::string error;
  } rows[] = {
      {"", unknown},
      {Wire(0xa2, 1, 0), unknown},                          // field 20
      {Wire(0x12), garbage},                                // only a tag
      {Wire(0x12, 5, 'x'), garbage},                        // shorter than its length field
      {Wire(0x12, 0x80, 0x80, 0x80, 0x80, 0x80), garbage},  // a length without end
      {Wire(0x12, 0xff, 0xff, 0xff, 0xff, 0x0f), garbage},  // 4 GiB
      {Wire(0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), garbage},
      {Wire(0x0a, 3, 8, 1), garbage},
      {std::string(100, '\xff'), garbage},
      {std::string(100, '\0'), garbage},
  };
  for (const auto& row : rows) {
    const grpc::ByteBuffer buffer = Buffer(row.wire, {1});
    EXPECT_EQ(Error(DecodeFromCaller(buffer).status()), row.error) << testing::PrintToString(row.wire);
    EXPECT_EQ(Error(DecodeFromPod(buffer).status()), row.error) << testing::PrintToString(row.wire);
    EXPECT_EQ(Error(DecodeFromLauncher(buffer).status()), row.error) << testing::PrintToString(row.wire);
    EXPECT_FALSE(DecodeFromWorker(buffer).ok()) << testing::PrintToString(row.wire);
  }
}

TEST(RshProtocol, OddWaysToSayItAreReadAsProtobufDoes) {
  auto signal = DecodeFromCaller(Buffer(Wire(0x12, 1, 'x', 0x20, 15)));  // of several fields the last one counts
  ASSERT_TRUE(signal.ok());
  EXPECT_EQ(std::get<SignalSent>(*signal).signal, 15);
  auto later = DecodeFromCaller(Buffer(Wire(0xa0, 1, 0, 0x12, 1, 'x')));  // after a field of a later version
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(Joined(std::get<Input>(*later).bytes), "x");
  auto longer = DecodeFromCaller(Buffer(Wire(0x12, 0x81, 0x80, 0, 'x')));  // a length in more bytes than it needs
  ASSERT_TRUE(longer.ok());
  EXPECT_EQ(Joined(std::get<Input>(*longer).bytes), "x");
}

}  // namespace
}  // namespace muster::rsh
