#include "agent/standby/frames.h"

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
      return true;
    case Letter::kImport:
    case Letter::kStart:
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

StatusOr<std::optional<Frame>> FrameReader::Next() {
  if (!pending_.empty() && !ComesFromPython(pending_[0])) {
    return absl::InvalidArgumentError(
        fmt::format("a message of a worker's Python begins with byte {}", static_cast<unsigned char>(pending_[0])));
  }
  if (pending_.size() < kHead) return std::nullopt;
  size_t size = 0;
  for (size_t at = 4; at > 0; --at) size = size << 8 | static_cast<unsigned char>(pending_[at]);
  if (size > kLongestBody) {
    return absl::InvalidArgumentError(
        fmt::format("a message of a worker's Python has {} bytes, at most {} are read", size, kLongestBody));
  }
  if (pending_.size() < kHead + size) return std::nullopt;
  Frame frame{static_cast<Letter>(pending_[0]), pending_.substr(kHead, size)};
  pending_.erase(0, kHead + size);
  return frame;
}

}  // namespace muster::agent::standby
