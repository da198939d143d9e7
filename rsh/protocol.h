// What is said between the two ends of the remote shell, as gRPC's buffers. Pure.
//
// Session: the caller opens with a command; the pod answers `Started`, then output as it comes, and `Ended` as the last
// word. Signals overtake input: a caller sends at most kInputWindow bytes that the command has not taken yet
// (`InputTaken`), so the pod can always go on reading. Output has HTTP/2's window: a caller that does not read makes
// the command wait.
// Attend: the launcher's agent says hello, and its verdict when the job is over.
//
// Bytes of the streams travel as one field of a message (rsh.proto), and are never copied into one: the head that
// protobuf would write goes before them.
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
inline constexpr int kPipeBytes = 1 << 20;                  // as much as an unprivileged process may ask for
inline constexpr size_t kInputWindow = size_t{2} << 20;     // bytes of stdin on their way
inline constexpr size_t kLongestMessage = size_t{2} << 20;  // a command line is shorter

// Why a session ended whose pod got a signal, as the reason in `Ended`.
inline constexpr char kPodStopping[] = "the pod is being stopped";

// Of both ends: few connections, which may carry much.
inline constexpr net::GrpcTuning kTuning{
    .first_chunk = 16 << 10, .least_chunk = 4 << 10, .window = 4 << 20, .frame = 1 << 20, .keepalive_ms = 15'000};

// Bytes that gRPC owns, in pieces.
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
  uint64_t bytes = 0;  // since the last one
};
struct Ended {
  int exit_code = 0;   // 0..255
  std::string reason;  // where it could not be started, or did not end by itself
};
using FromPod = std::variant<Started, Output, InputTaken, Ended>;

struct Hello {
  std::string launcher;  // for people: its host
};
struct Verdict {
  int exit_code = 0;
  std::string reason;
  ExitClass exit_class = ExitClass::kSuccess;  // by the launcher's own rules; of one that does not say it: Classify()
};
using FromLauncher = std::variant<Hello, Verdict>;

struct Welcome {};
struct Heard {};
using FromWorker = std::variant<Welcome, Heard>;

grpc::ByteBuffer Encode(const FromCaller& message);
grpc::ByteBuffer Encode(const FromPod& message);
grpc::ByteBuffer Encode(const FromLauncher& message);
grpc::ByteBuffer Encode(const FromWorker& message);

// InvalidArgument: not such a message, a number out of range, or another version of the protocol (says which).
StatusOr<FromCaller> DecodeFromCaller(const grpc::ByteBuffer& buffer);
StatusOr<FromPod> DecodeFromPod(const grpc::ByteBuffer& buffer);
StatusOr<FromLauncher> DecodeFromLauncher(const grpc::ByteBuffer& buffer);
StatusOr<FromWorker> DecodeFromWorker(const grpc::ByteBuffer& buffer);

}  // namespace muster::rsh
