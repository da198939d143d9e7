// SPDX-License-Identifier: Apache-2.0
// Kubernetes quantities: "500m", "1Gi", "2e3", 4. Pure; untrusted input.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

// A multiple of a billionth, from -(2^63 - 1) to 2^63 - 1 whole units. As in Kubernetes, a finer amount is rounded away
// from zero, and a larger one becomes the limit. Two spellings of one amount are equal: "1000m" and "1".
class Quantity {
 public:
  Quantity() = default;
  explicit Quantity(int64_t units);

  int64_t Units() const;  // whole ones, rounded away from zero: "1500m" is 2
  bool IsZero() const { return nanos_ == 0; }
  std::string Text() const;  // as Kubernetes writes it: "4", "1500m", "17179869184"

  Quantity operator+(Quantity other) const;
  Quantity Times(int64_t count) const;

  auto operator<=>(const Quantity&) const = default;

 private:
  friend StatusOr<Quantity> ParseQuantity(std::string_view text);
  __extension__ typedef __int128 Nanos;
  Nanos nanos_ = 0;
};

// InvalidArgument names the text. Accepted: a sign, digits with a point, then one of n u m k M G T P E, Ki Mi Gi Ti Pi
// Ei, or an exponent ("e3", "E3").
StatusOr<Quantity> ParseQuantity(std::string_view text);
// A text or a number.
StatusOr<Quantity> ReadQuantity(const Json& value);

}  // namespace muster::controller
