// SPDX-License-Identifier: Apache-2.0
#include "http/server_rules.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"

namespace muster::http {
namespace {

constexpr auto kFirstBytes = std::chrono::seconds(3);
constexpr size_t kPace = 64 << 10;  // bytes a second

bool IsUnfinished(const Guest& guest) { return guest.stage == Stage::kNew || guest.stage == Stage::kReceiving; }

// The address with the largest sum of `weight`.
template <class Weight>
std::string_view Heaviest(std::span<const Guest> guests, Weight weight) {
  std::map<std::string_view, size_t> sums;
  for (const Guest& guest : guests) sums[guest.address] += weight(guest);
  return std::max_element(sums.begin(), sums.end(),
                          [](const auto& one, const auto& other) { return one.second < other.second; })
      ->first;
}

// The first guest by `key` among those for which it is not nullopt.
template <class Key>
std::optional<size_t> First(std::span<const Guest> guests, Key key) {
  std::optional<size_t> first;
  for (size_t i = 0; i < guests.size(); ++i) {
    const auto own = key(guests[i]);
    if (own && (!first || *own < *key(guests[*first]))) first = i;
  }
  return first;
}

}  // namespace

std::optional<size_t> YieldsConnection(std::span<const Guest> guests) {
  if (guests.empty()) return std::nullopt;
  const std::string_view address =
      Heaviest(guests, [](const Guest& guest) { return guest.stage == Stage::kAnswering ? 0 : 1; });
  return First(guests, [&](const Guest& guest) {
    using Order = std::tuple<Stage, TimePoint>;
    const bool yields = guest.address == address && guest.stage != Stage::kAnswering;
    return yields ? std::optional<Order>({guest.stage, guest.since}) : std::nullopt;
  });
}

std::optional<size_t> YieldsMemory(std::span<const Guest> guests) {
  if (guests.empty()) return std::nullopt;
  const auto unfinished = [](const Guest& guest) { return IsUnfinished(guest) ? guest.bytes : 0; };
  const std::string_view address = Heaviest(guests, unfinished);
  return First(guests, [&](const Guest& guest) {
    const bool yields = guest.address == address && unfinished(guest) > 0;
    return yields ? std::optional(guest.since) : std::nullopt;
  });
}

TimePoint DueBy(TimePoint first_byte, size_t bytes, TimePoint limit) {
  const std::chrono::microseconds for_bytes(bytes * 1'000'000 / kPace);
  return std::min(limit, first_byte + kFirstBytes + for_bytes);
}

std::optional<BadFraming> JudgeFraming(int minor, const Headers& fields) {
  const auto count = [&](std::string_view name) {
    return std::count_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
  };
  for (const char* name : {"host", "content-length", "transfer-encoding"}) {
    if (count(name) > 1) return BadFraming{400, fmt::format("it has several headers {}", name)};
  }
  const auto length = FindHeader(fields, "content-length");
  if (length && (length->empty() || length->find_first_not_of("0123456789") != std::string_view::npos)) {
    return BadFraming{400, fmt::format("its Content-Length is not a number: {}", *length)};
  }
  const auto coding = FindHeader(fields, "transfer-encoding");
  if (!coding) return std::nullopt;
  if (length) return BadFraming{400, "it has both Transfer-Encoding and Content-Length"};
  if (minor == 0) return BadFraming{400, "it has a Transfer-Encoding, which HTTP/1.0 does not know"};
  if (Lower(*coding) != "chunked") {
    return BadFraming{501, fmt::format("its Transfer-Encoding is {}; only chunked is understood", *coding)};
  }
  return std::nullopt;
}

bool HasFoldedLine(std::string_view header) {
  return header.find("\n ") != std::string_view::npos || header.find("\n\t") != std::string_view::npos;
}

}  // namespace muster::http
