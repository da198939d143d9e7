// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/large_reviews.h"

#include "base/json_fields.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/kube/client/freshness.h"

namespace muster::controller {

ReviewHead HeadOfReview(std::string_view body) {
  constexpr size_t kHead = size_t{16} << 10;
  const Json head = ReadJsonHead(body.substr(0, kHead), 2);
  const Json& request = PartOf(head, "request");
  return {TextField(request, "uid"), TextField(request, "namespace")};
}

bool LargeReviews::Push(std::string_view ns, Waiting review) {
  const size_t size = review.body.size();
  const std::string key = KeyOf(ns, fmt::format("{}", ++serial_));
  size_t& of_one = bytes_of_[std::string(NamespaceOf(key))];  // `ns` may be anything
  const bool fits = bytes_ + size <= kMost && of_one + size <= kMostOfOne;
  if (fits) {
    bytes_ += size;
    of_one += size;
    line_.Push(key);
    waiting_[key] = std::move(review);
  } else if (of_one == 0) {
    bytes_of_.erase(std::string(NamespaceOf(key)));
  }
  return fits;
}

LargeReviews::Waiting LargeReviews::Pop(TimePoint now) {
  while (const auto key = line_.Pop([](std::string_view) { return true; })) {
    Waiting review = std::move(waiting_.extract(*key).mapped());
    bytes_ -= review.body.size();
    const auto of_one = bytes_of_.find(NamespaceOf(*key));
    if ((of_one->second -= review.body.size()) == 0) bytes_of_.erase(of_one);
    if (now - review.since < kUseful) return review;
  }
  return {};
}

}  // namespace muster::controller
