// Jobs to begin with: `muster init`. Each runs as it is, by `muster local` and in a cluster.
#pragma once

#include <span>
#include <string_view>

namespace muster::controller {

struct JobSample {
  std::string_view name;     // the word of the command line
  std::string_view summary;  // in a line
  std::string_view text;     // YAML, with comments
};

extern const std::span<const JobSample> kJobSamples;  // the usual one first

}  // namespace muster::controller
