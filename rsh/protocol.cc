// SPDX-License-Identifier: Apache-2.0
#include "rsh/protocol.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "base/version.h"
#include "rsh/rsh.pb.h"

namespace muster::rsh {
namespace {

constexpr int kLengthDelimited = 2;  // protobuf's wire type
constexpr size_t kLongestHead = 6;   // one byte of tag, five of length
constexpr int kMaxSignal = 64;

grpc::Slice Copied(const std::string& text) { return grpc::Slice(text); }

grpc::ByteBuffer Buffer(const google::protobuf::MessageLite& message) {
  grpc::Slice slice = Copied(message.SerializeAsString());
  return {&slice, 1};
}

// A message with one field of bytes: the field's tag and length as protobuf writes them, then the bytes, not copied.
grpc::ByteBuffer BytesBuffer(int field, const Bytes& bytes) {
  std::string head(1, static_cast<char>(field << 3 | kLengthDelimited));
  size_t rest = Size(bytes);
  for (; rest >= 0x80; rest >>= 7) head += static_cast<char>(rest | 0x80);
  head += static_cast<char>(rest);
  Bytes slices = {Copied(head)};
  slices.insert(slices.end(), bytes.begin(), bytes.end());
  return {slices.data(), slices.size()};
}

struct Field {
  int number = 0;
  Bytes bytes;
};

// The field of a message that consists of one field of bytes. Nullopt: any other message; then `slices` is unchanged.
std::optional<Field> OnlyBytes(Bytes& slices) {
  std::string head;
  for (const grpc::Slice& slice : slices) {
    size_t take = std::min(slice.size(), kLongestHead - head.size());
    head.append(reinterpret_cast<const char*>(slice.begin()), take);
    if (head.size() == kLongestHead) break;
  }
  if (head.size() < 2 || (head[0] & 7) != kLengthDelimited || (head[0] & 0x80) != 0) return std::nullopt;
  uint64_t length = 0;
  size_t at = 1;
  for (int shift = 0;; shift += 7, ++at) {
    if (at == head.size()) return std::nullopt;
    length |= static_cast<uint64_t>(head[at] & 0x7f) << shift;
    if ((head[at] & 0x80) == 0) break;
  }
  ++at;
  if (length != Size(slices) - at) return std::nullopt;
  Field field{head[0] >> 3, {}};
  for (grpc::Slice& slice : slices) {
    size_t drop = std::min(at, slice.size());
    at -= drop;
    if (drop < slice.size()) field.bytes.push_back(drop == 0 ? slice : slice.sub(drop, slice.size()));
  }
  return field;
}

StatusOr<Bytes> Slices(const grpc::ByteBuffer& buffer) {
  Bytes slices;
  if (!buffer.Dump(&slices).ok()) return absl::InvalidArgumentError("a message that cannot be unpacked");
  return slices;
}

template <typename Message>
StatusOr<Message> Parsed(const Bytes& slices) {
  Message message;
  if (!message.ParseFromString(net::Joined(slices)))
    return absl::InvalidArgumentError("not a message of the remote shell");
  return message;
}

Status Unknown() { return absl::InvalidArgumentError("a message of the remote shell that this version does not know"); }

Status CheckProtocol(int protocol) {
  if (protocol == kRshProtocol) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "the caller speaks version {} of the remote shell's protocol, this pod version {} (muster {}); run the "
      "same muster in every pod",
      protocol, kRshProtocol, Version()));
}

Status CheckCode(int code) {
  if (code >= 0 && code <= 255) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("exit code {}: it must be 0 to 255", code));
}

}  // namespace

size_t Size(const Bytes& bytes) {
  size_t size = 0;
  for (const grpc::Slice& slice : bytes) size += slice.size();
  return size;
}

grpc::ByteBuffer Encode(const FromCaller& message) {
  if (const auto* input = std::get_if<Input>(&message)) {
    return BytesBuffer(v1::FromCaller::kInputFieldNumber, input->bytes);
  }
  v1::FromCaller wire;
  if (const auto* open = std::get_if<Open>(&message)) {
    wire.mutable_open()->set_protocol(kRshProtocol);
    wire.mutable_open()->set_command(open->command);
    wire.mutable_open()->set_caller(open->caller);
  } else if (const auto* sent = std::get_if<SignalSent>(&message)) {
    wire.set_signal(sent->signal);
  } else {
    wire.set_input_ended(true);
  }
  return Buffer(wire);
}

StatusOr<FromCaller> DecodeFromCaller(const grpc::ByteBuffer& buffer) {
  MUSTER_ASSIGN_OR_RETURN(Bytes slices, Slices(buffer));
  if (auto field = OnlyBytes(slices); field && field->number == v1::FromCaller::kInputFieldNumber) {
    return Input{std::move(field->bytes)};
  }
  MUSTER_ASSIGN_OR_RETURN(auto wire, Parsed<v1::FromCaller>(slices));
  switch (wire.frame_case()) {
    case v1::FromCaller::kOpen:
      MUSTER_RETURN_IF_ERROR(CheckProtocol(wire.open().protocol()));
      return Open{wire.open().command(), wire.open().caller()};
    case v1::FromCaller::kInput:
      return Input{{Copied(wire.input())}};
    case v1::FromCaller::kInputEnded:
      return InputEnded();
    case v1::FromCaller::kSignal:
      if (wire.signal() < 1 || wire.signal() > kMaxSignal) {
        return absl::InvalidArgumentError(fmt::format("signal {}: it must be 1 to {}", wire.signal(), kMaxSignal));
      }
      return SignalSent{wire.signal()};
    case v1::FromCaller::FRAME_NOT_SET:
      break;
  }
  return Unknown();
}

grpc::ByteBuffer Encode(const FromPod& message) {
  if (const auto* output = std::get_if<Output>(&message)) {
    return BytesBuffer(output->err ? v1::FromPod::kErrFieldNumber : v1::FromPod::kOutFieldNumber, output->bytes);
  }
  v1::FromPod wire;
  if (const auto* started = std::get_if<Started>(&message)) {
    wire.mutable_started()->set_pid(started->pid);
  } else if (const auto* taken = std::get_if<InputTaken>(&message)) {
    wire.set_input_taken(taken->bytes);
  } else if (const auto* ended = std::get_if<Ended>(&message)) {
    wire.mutable_ended()->set_exit_code(ended->exit_code);
    wire.mutable_ended()->set_reason(ended->reason);
  }
  return Buffer(wire);
}

StatusOr<FromPod> DecodeFromPod(const grpc::ByteBuffer& buffer) {
  MUSTER_ASSIGN_OR_RETURN(Bytes slices, Slices(buffer));
  if (auto field = OnlyBytes(slices)) {
    const bool err = field->number == v1::FromPod::kErrFieldNumber;
    if (err || field->number == v1::FromPod::kOutFieldNumber) return Output{err, std::move(field->bytes)};
  }
  MUSTER_ASSIGN_OR_RETURN(auto wire, Parsed<v1::FromPod>(slices));
  switch (wire.frame_case()) {
    case v1::FromPod::kStarted:
      return Started{wire.started().pid()};
    case v1::FromPod::kOut:
      return Output{false, {Copied(wire.out())}};
    case v1::FromPod::kErr:
      return Output{true, {Copied(wire.err())}};
    case v1::FromPod::kInputTaken:
      return InputTaken{wire.input_taken()};
    case v1::FromPod::kEnded:
      MUSTER_RETURN_IF_ERROR(CheckCode(wire.ended().exit_code()));
      return Ended{wire.ended().exit_code(), wire.ended().reason()};
    case v1::FromPod::FRAME_NOT_SET:
      break;
  }
  return Unknown();
}

grpc::ByteBuffer Encode(const FromLauncher& message) {
  v1::FromLauncher wire;
  if (const auto* hello = std::get_if<Hello>(&message)) {
    wire.mutable_hello()->set_protocol(kRshProtocol);
    wire.mutable_hello()->set_launcher(hello->launcher);
  } else if (const auto* verdict = std::get_if<Verdict>(&message)) {
    wire.mutable_verdict()->set_exit_code(verdict->exit_code);
    wire.mutable_verdict()->set_reason(verdict->reason);
    wire.mutable_verdict()->set_exit_class(ExitClassName(verdict->exit_class).data());
  }
  return Buffer(wire);
}

StatusOr<FromLauncher> DecodeFromLauncher(const grpc::ByteBuffer& buffer) {
  MUSTER_ASSIGN_OR_RETURN(Bytes slices, Slices(buffer));
  MUSTER_ASSIGN_OR_RETURN(auto wire, Parsed<v1::FromLauncher>(slices));
  switch (wire.frame_case()) {
    case v1::FromLauncher::kHello:
      MUSTER_RETURN_IF_ERROR(CheckProtocol(wire.hello().protocol()));
      return Hello{wire.hello().launcher()};
    case v1::FromLauncher::kVerdict:
      MUSTER_RETURN_IF_ERROR(CheckCode(wire.verdict().exit_code()));
      return Verdict{wire.verdict().exit_code(), wire.verdict().reason(),
                     ParseExitClass(wire.verdict().exit_class()).value_or(Classify(wire.verdict().exit_code()))};
    case v1::FromLauncher::FRAME_NOT_SET:
      break;
  }
  return Unknown();
}

grpc::ByteBuffer Encode(const FromWorker& message) {
  v1::FromWorker wire;
  if (std::holds_alternative<Welcome>(message)) {
    wire.set_welcome(true);
  } else {
    wire.set_heard(true);
  }
  return Buffer(wire);
}

StatusOr<FromWorker> DecodeFromWorker(const grpc::ByteBuffer& buffer) {
  MUSTER_ASSIGN_OR_RETURN(Bytes slices, Slices(buffer));
  MUSTER_ASSIGN_OR_RETURN(auto wire, Parsed<v1::FromWorker>(slices));
  switch (wire.frame_case()) {
    case v1::FromWorker::kWelcome:
      return Welcome();
    case v1::FromWorker::kHeard:
      return Heard();
    case v1::FromWorker::FRAME_NOT_SET:
      break;
  }
  return Unknown();
}

}  // namespace muster::rsh
