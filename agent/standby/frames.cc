// SPDX-License-Identifier: Apache-2.0
#include "agent/standby/frames.h"

#include <utility>

#include "base/text.h"

namespace muster::agent::standby {
namespace {

constexpr size_t kHead = 5;

bool ComesFromPython(char letter) {
  switch (static_cast<Letter>(letter)) {
    case Letter::kHello:
    case Letter::kPing:
    case Letter::kNames:
    case Letter::kReady:
    case Letter::kUnfit:
    case Letter::kEnd:
    case Letter::kVersions:
      return true;
    case Letter::kImport:
    case Letter::kLook:
    case Letter::kStart:
    case Letter::kStartAndLearn:
      return false;
  }
  return false;
}

}  // namespace

std::string Encode(Letter letter, std::string_view body) {
  std::string frame(1, static_cast<char>(letter));
  for (int shift = 0; shift < 32; shift += 8) frame += static_cast<char>((body.size() >> shift) & 0xff);
  return frame.append(body);
}

bool IsHelloOf(const Frame& frame, int64_t pid) {
  return frame.letter == Letter::kHello && frame.body == std::to_string(pid);
}

std::string JoinParts(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) text += '\0';
    text += part;
  }
  return text;
}

std::vector<std::string> SplitParts(std::string_view text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (std::string_view part : Split(text, '\0')) parts.emplace_back(part);
  return parts;
}

void FrameReader::Add(std::string_view bytes) {
  pending_.erase(0, std::exchange(at_, 0));
  pending_.append(bytes);
}

StatusOr<std::optional<Frame>> FrameReader::Next() {
  const std::string_view rest = std::string_view(pending_).substr(at_);
  if (!rest.empty() && !ComesFromPython(rest[0])) {
    return absl::InvalidArgumentError(
        fmt::format("a message of a worker's Python begins with byte {}", static_cast<unsigned char>(rest[0])));
  }
  if (rest.size() < kHead) return std::nullopt;
  size_t size = 0;
  for (size_t at = 4; at > 0; --at) size = size << 8 | static_cast<unsigned char>(rest[at]);
  if (size > kLongestBody) {
    return absl::InvalidArgumentError(
        fmt::format("a message of a worker's Python has {} bytes, at most {} are read", size, kLongestBody));
  }
  if (rest.size() < kHead + size) return std::nullopt;
  at_ += kHead + size;
  return Frame{static_cast<Letter>(rest[0]), std::string(rest.substr(kHead, size))};
}

}  // namespace muster::agent::standby
