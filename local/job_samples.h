// SPDX-License-Identifier: Apache-2.0
// The job files that `muster init` writes. Each runs unchanged, by `muster local` and in a cluster.
#pragma once

#include <span>
#include <string_view>

namespace muster::local {

struct JobSample {
  std::string_view name;     // the kind on the command line
  std::string_view summary;  // in a line
  std::string_view text;     // YAML, with comments
};

extern const std::span<const JobSample> kJobSamples;  // the default first

}  // namespace muster::local
