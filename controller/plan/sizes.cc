// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/sizes.h"

#include "base/text.h"

namespace muster::controller {
namespace {

constexpr char kRemedy[] = "keep long texts and files in a ConfigMap, a volume or the image";

}  // namespace

int64_t BytesOf(const Json& value) { return static_cast<int64_t>(WriteJson(value).size()); }

Status CheckObjectBytes(std::string_view what, int64_t bytes) {
  if (bytes <= kMostObjectBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{} would have {} bytes, and the API server stores {} at most; {}",
                                                what, bytes, kMostObjectBytes, kRemedy));
}

Status CheckPlanBytes(int64_t bytes) {
  if (bytes <= kMostPlanBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the templates of this job's objects would have {} bytes together, with spec.trainer and the labels "
                  "and annotations in each, and {} are the most; {}",
                  bytes, kMostPlanBytes, kRemedy));
}

Status CheckMadeBytes(std::string_view path, int64_t count, int64_t bytes, int64_t others) {
  if (count * bytes + others <= kMostMadeBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: {} of {} bytes each, and {} bytes of other objects, are more than the {} bytes that one job may "
                  "make; use fewer, or a smaller template: {}",
                  path, Counted(count, "object"), bytes, others, kMostMadeBytes, kRemedy));
}

}  // namespace muster::controller
