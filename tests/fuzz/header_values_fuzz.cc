// SPDX-License-Identifier: Apache-2.0
// libFuzzer: header values of stores: Retry-After, RateLimit, hashes in base64, in hex and in our own notation.
#include "base/base64.h"
#include "http/retry.h"
#include "initializers/facts/digest.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  using namespace muster::initializers;
  using std::chrono::hours, std::chrono::seconds;
  const std::string_view value(reinterpret_cast<const char*>(data), size);
  for (int64_t now : {int64_t{0}, int64_t{1'795'309'323}, int64_t{253'402'300'799}}) {
    const auto pause = http::ParseRetryAfter(value, now);
    Must(!pause || (*pause >= seconds(0) && *pause <= hours(365 * 24)));
  }
  const auto limit = http::ParseRateLimit(value);
  Must(!limit || (*limit >= seconds(1) && *limit <= hours(365 * 24) + seconds(1)));
  if (auto raw = FromBase64(value); raw.ok()) Must(ToBase64(*raw) == value);
  if (auto raw = FromHex(value); raw.ok()) Must(ToHex(*raw).size() == value.size());
  if (auto expectation = ParseExpectation(value); expectation.ok()) {
    auto again = ParseExpectation(Describe(*expectation));
    Must(again.ok() && *again == *expectation);
  }
  return 0;
}
