// SPDX-License-Identifier: Apache-2.0
// The messages between the agent and Muster's part of a worker's Python (sitecustomize.py). Pure.
//
// A frame is a letter, four bytes of length (little endian), and so many bytes. Texts are UTF-8; lists are separated by
// NUL.
//
//   agent -> Python                                     Python -> agent
//   I  folder of the script, names of modules: import   H  the process with this pid runs this code
//   L  folder of the script, "script" or "module", its  V  two digests: of what names the script, of the versions of
//      name: look what it imports (probe.py)               Python and the installed packages
//   P  still there?                                     P  yes; a text says what a cold start would find changed
//   S  environment; with it the streams 0, 1 and 2:     N  names of modules that a worker has imported, or that the
//      become the worker                                   probe has found in the script, with learner.py's entries
//   T  as S, and go on as a worker that learns          R  imported so many modules, all that were asked for: ready
//                                                       U  this process cannot be a standby: module, what it does
//                                                       E  nor can one that imports it and what comes after it: the
//                                                       same
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::agent::standby {

enum class Letter : char {
  kImport = 'I',
  kLook = 'L',
  kPing = 'P',  // in both directions
  kStart = 'S',
  kStartAndLearn = 'T',
  kHello = 'H',
  kVersions = 'V',
  kNames = 'N',
  kReady = 'R',
  kUnfit = 'U',
  kEnd = 'E',
};

struct Frame {
  Letter letter = Letter::kHello;
  std::string body;
  bool operator==(const Frame&) const = default;
};

inline constexpr size_t kLongestBody = 1 << 20;  // of a frame from Python

std::string Encode(Letter letter, std::string_view body = {});

// Whether the process `pid` itself says hello. One that the worker's command starts before its Python, or in place of
// it, may run sitecustomize.py, too.
bool IsHelloOf(const Frame& frame, int64_t pid);

// Parts joined by NUL, and back. No part of an empty text.
std::string JoinParts(const std::vector<std::string>& parts);
std::vector<std::string> SplitParts(std::string_view text);

// Puts frames together from the pieces that a socket gives. Memory: one frame at most.
class FrameReader {
 public:
  void Add(std::string_view bytes);
  // The next whole frame; nullopt: more bytes are needed. InvalidArgument: a letter that Python does not send, or a
  // body above kLongestBody. The script can write to this socket, so both are possible.
  StatusOr<std::optional<Frame>> Next();

 private:
  std::string pending_;
  size_t at_ = 0;  // of the next frame in `pending_`
};

}  // namespace muster::agent::standby
