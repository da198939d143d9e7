// SPDX-License-Identifier: Apache-2.0
// The admission reviews with a long body that wait to be judged. One is judged at a time, and namespaces take turns, so
// a tenant's long objects delay the reviews of others by one of them. Short reviews do not wait. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "controller/kube/jobs/fair_line.h"

namespace muster::controller {

// What the beginning of a review says. The API server writes these fields before the objects. Untrusted input.
struct ReviewHead {
  std::string uid, ns;  // empty: it does not say
};
ReviewHead HeadOfReview(std::string_view body);

class LargeReviews {
 public:
  // Longer bodies wait, in bytes. A shorter one is judged within some milliseconds.
  static constexpr size_t kLarge = size_t{64} << 10;
  // The most bytes that wait: of one namespace, and together.
  static constexpr size_t kMostOfOne = size_t{8} << 20, kMost = size_t{32} << 20;
  // The API server waits no longer for an answer.
  static constexpr std::chrono::seconds kUseful{10};

  struct Waiting {
    std::string body;
    std::function<void(std::string body)> judge;
    TimePoint since;
  };

  // False: too many bytes wait, and `review` was not added.
  bool Push(std::string_view ns, Waiting review);
  // The next one whose answer is still awaited; `judge` is empty if there is none.
  Waiting Pop(TimePoint now);

 private:
  FairLine line_;
  std::map<std::string, Waiting> waiting_;               // by key of line_: namespace and serial number
  std::map<std::string, size_t, std::less<>> bytes_of_;  // by namespace; none is 0
  size_t bytes_ = 0;
  uint64_t serial_ = 0;
};

}  // namespace muster::controller
