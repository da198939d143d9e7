// SPDX-License-Identifier: Apache-2.0
// The messages between the two ends of the remote shell, as gRPC's buffers. Pure.
//
// Session: the caller opens with a command. The pod answers `Started`, then output as it comes, and `Ended` as the last
// message. The caller sends at most kInputWindow bytes that the command has not taken yet (`InputTaken`). So the pod
// can always read on, and a signal overtakes input. HTTP/2's window bounds output: a caller that does not read makes
// the command wait.
// Attend: the launcher's agent says hello, and tells the verdict when the job is over.
//
// The bytes of stdin, stdout and stderr are one field of a message (rsh.proto). They are never copied into a protobuf
// message: only the head that protobuf would write is put before them.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/exit_codes.h"
#include "base/status.h"
#include "net/grpc_queue.h"

namespace muster::rsh {

inline constexpr char kSessionMethod[] = "/muster.rsh.v1.RemoteShell/Session";
inline constexpr char kAttendMethod[] = "/muster.rsh.v1.RemoteShell/Attend";

inline constexpr size_t kChunk = size_t{1024} << 10;        // of a stream, in one message
inline constexpr int kPipeBytes = 1 << 20;                  // the most that an unprivileged process may ask for
inline constexpr size_t kInputWindow = size_t{2} << 20;     // bytes of stdin that the command has not taken yet
inline constexpr size_t kLongestMessage = size_t{2} << 20;  // longer than any command line

// The reason in `Ended` if the pod got a signal.
inline constexpr char kPodStopping[] = "the pod is being stopped";

// For both ends: few connections, with much data.
inline constexpr net::GrpcTuning kTuning{
    .first_chunk = 16 << 10, .least_chunk = 4 << 10, .window = 4 << 20, .frame = 1 << 20, .keepalive_ms = 15'000};

// Bytes in gRPC's memory, in pieces.
using Bytes = std::vector<grpc::Slice>;
size_t Size(const Bytes& bytes);

struct Open {
  std::string command;  // for `sh -c`
  std::string caller;   // for people: "host, pid 12"
};
struct Input {
  Bytes bytes;
};
struct InputEnded {};
struct SignalSent {
  int signal = 0;  // 1..64, to the whole process group
};
using FromCaller = std::variant<Open, Input, InputEnded, SignalSent>;

struct Started {
  int64_t pid = 0;
};
struct Output {
  bool err = false;
  Bytes bytes;
};
struct InputTaken {
  uint64_t bytes = 0;  // since the last InputTaken
};
struct Ended {
  int exit_code = 0;   // 0..255
  std::string reason;  // if it could not be started, or did not end by itself; else empty
};
using FromPod = std::variant<Started, Output, InputTaken, Ended>;

struct Hello {
  std::string launcher;  // for people: its host
};
struct Verdict {
  int exit_code = 0;
  std::string reason;
  ExitClass exit_class = ExitClass::kSuccess;  // by the launcher's own rules; Classify() if it does not tell it
};
using FromLauncher = std::variant<Hello, Verdict>;

struct Welcome {};
struct Heard {};
using FromWorker = std::variant<Welcome, Heard>;

grpc::ByteBuffer Encode(const FromCaller& message);
grpc::ByteBuffer Encode(const FromPod& message);
grpc::ByteBuffer Encode(const FromLauncher& message);
grpc::ByteBuffer Encode(const FromWorker& message);

// InvalidArgument: no such message, a number out of range, or another version of the protocol (the text names both).
StatusOr<FromCaller> DecodeFromCaller(const grpc::ByteBuffer& buffer);
StatusOr<FromPod> DecodeFromPod(const grpc::ByteBuffer& buffer);
StatusOr<FromLauncher> DecodeFromLauncher(const grpc::ByteBuffer& buffer);
StatusOr<FromWorker> DecodeFromWorker(const grpc::ByteBuffer& buffer);

}  // namespace muster::rsh
