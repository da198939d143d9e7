// SPDX-License-Identifier: Apache-2.0
// The wire protocol of PyTorch's TCPStore: bytes in, requests out. Pure code, no I/O.
//
// The protocol has no framing, no version and no request id. An opcode byte is followed by its fields: integers in host
// byte order, strings as u64 length + bytes. Three generations of clients share one port. Their first bytes tell them
// apart: `00 CE F7 85 3C` is 2.2 or later (kC; later versions only add opcodes), anything else is older. The two older
// generations share opcodes 0 to 6. The other opcodes decide between 2.1 (kB) and 2.0 or before (kA):
//   7 as the first message: WATCH_KEY on kA's second connection; later: kB's DELETE_KEY (same fields, other answer)
//   8: kA's DELETE_KEY if nothing follows the key (kA waits for its answer), else kB's APPEND
//   9 to 11: kB
// Sources: PyTorch's TCPStore.cpp of 1.13, 2.1, 2.6. kMaxKey, kMaxValue, kMaxKeys are as in its libuv server.
//
// Not thread-safe. A Parser belongs to one connection. It takes memory only for bytes that have really arrived, and
// scans a request once, however many pieces it comes in.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/buffer.h"

namespace muster::store {

static_assert(std::endian::native == std::endian::little,
              "the wire is the host's byte order; we speak to x86 and arm64");

// The opcodes of generation C; those of older generations are mapped to them. kWatchKey exists in generation A only.
enum class Op : uint8_t {
  kValidate,
  kSet,
  kCompareSet,
  kGet,
  kAdd,
  kCheck,
  kWait,
  kGetNumKeys,
  kDeleteKey,
  kAppend,
  kMultiGet,
  kMultiSet,
  kCancelWait,
  kPing,
  kQueuePush,
  kQueuePop,
  kQueueLen,
  kListKeys,
  kBarrier,
  kWatchKey,
};
inline constexpr int kOps = 20;

enum class Generation : uint8_t { kUnknown, kOld /* A or B */, kA, kB, kC };

inline constexpr uint32_t kMagic = 0x3C85F7CE;
inline constexpr uint64_t kMaxKey = 8 << 10;       // bytes of one key
inline constexpr uint64_t kMaxValue = 8 << 20;     // bytes of one value in a request
inline constexpr uint64_t kMaxKeys = 128 << 10;    // keys, or pairs, of one request
inline constexpr uint64_t kMaxRequest = 64 << 20;  // bytes of one request; also of a value that grew by APPEND
inline constexpr uint64_t kMaxAnswer = 256 << 20;  // bytes of one answer

// Answers of one byte.
inline constexpr uint8_t kReady = 0, kNotReady = 1;            // CHECK
inline constexpr uint8_t kStopWaiting = 0, kWaitCanceled = 1;  // WAIT, BARRIER, CANCEL_WAIT
inline constexpr uint8_t kCallbackRegistered = 3;              // WATCH_KEY
// After the answer to WATCH_KEY, at every change of the key: one of these, key, value before, value afterwards.
inline constexpr uint8_t kKeyUpdated = 0, kKeyCreated = 1, kKeyDeleted = 2;

// One request. The views are valid until the parser's next call or the end of the input they came from. A long request
// that arrived without another one behind it lies in `bytes`; the key space may take this memory to keep the value.
struct Request {
  Op op = Op::kValidate;
  int64_t number = 0;                  // ADD's delta, BARRIER's world, PING's nonce
  std::vector<std::string_view> args;  // keys and values as on the wire; MULTI_SET: key, value, key, value ...
  Buffer bytes;                        // memory of `args`; empty: they lie elsewhere
  const char* why = "";                // after kViolation: what was wrong
};

class Parser {
 public:
  enum class Result : uint8_t {
    kRequest,    // *request is filled
    kNeedMore,   // the whole input was taken
    kForeign,    // the first byte belongs to HTTP/2 or TLS; nothing was taken from the input, Pending() is empty
    kViolation,  // close this connection; request->why says what was wrong
  };

  // Takes the next request from the kept input and then from *input, which it advances.
  Result Next(std::string_view* input, Request* request);
  // Keeps input that cannot be processed yet; Next() begins there.
  void Keep(std::string_view input);
  // True while the parser holds a part of a request, or kept input.
  bool HasPending() const { return partial_ != nullptr; }
  // Memory into which the rest of a long field (16 KiB and more), and nothing else, can be received without a copy;
  // else empty. If that needs new memory, takes `spare`, provided that it is larger than the bytes received so far.
  std::span<char> Tail(Buffer* spare);
  void Commit(size_t bytes);

  Generation generation() const { return generation_; }

 private:
  // How far a request has been scanned.
  struct Scan {
    size_t at = 1;      // bytes understood
    size_t need = 1;    // bytes without which the scan cannot go on
    uint32_t left = 0;  // strings still to come of a counted list
    uint8_t field = 0;  // of the op's layout
    bool counted = false;
  };
  enum class Found : uint8_t { kWhole, kPart, kBad };
  struct Partial {
    Buffer bytes;
    size_t begin = 0;  // of the request being scanned
    Scan scan;
  };

  Result Parse(std::string_view bytes, Scan* scan, Request* request);
  bool MapOldOp(uint8_t code, std::string_view bytes, Scan* scan, Op* op, Found* found, const char** why);
  static Found Walk(Op op, std::string_view bytes, Scan* scan, const char** why);
  static void Slice(Op op, std::string_view bytes, Request* request);

  std::unique_ptr<Partial> partial_;
  Generation generation_ = Generation::kUnknown;
  bool first_ = true;
};

// Writing, for the server's answers and for clients.
template <typename T>
void PutNumber(std::string* out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}
inline void PutString(std::string* out, std::string_view text) {
  PutNumber<uint64_t>(out, text.size());
  out->append(text);
}
inline void PutOp(std::string* out, Op op) { out->push_back(static_cast<char>(op)); }
// `op` with a list of counted keys: CHECK, WAIT, MULTI_GET.
void PutKeys(std::string* out, Op op, std::span<const std::string> keys);

}  // namespace muster::store
