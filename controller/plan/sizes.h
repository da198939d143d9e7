// SPDX-License-Identifier: Apache-2.0
// The sizes of what a job makes, as JSON text. They are checked before the objects are built or sent: one that is too
// large for the API server would be refused at each try, and many would take all memory of the controller. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

inline constexpr int64_t kMostDataBytes = int64_t{1} << 20;    // data of a ConfigMap: Kubernetes' limit
inline constexpr int64_t kMostObjectBytes = int64_t{3} << 19;  // one object: etcd's usual limit
inline constexpr int64_t kMostPlanBytes = int64_t{4} << 20;    // a plan, which has each template once
inline constexpr int64_t kMostMadeBytes = int64_t{64} << 20;   // all objects that Muster makes for one job

int64_t BytesOf(const Json& value);

// InvalidArgument names the object or the job, its size, the limit and the remedy.
Status CheckObjectBytes(std::string_view what, int64_t bytes);
Status CheckPlanBytes(int64_t bytes);
// `count` objects of `bytes` each, of the template at `path`, and `others` bytes of further objects.
Status CheckMadeBytes(std::string_view path, int64_t count, int64_t bytes, int64_t others);

}  // namespace muster::controller
