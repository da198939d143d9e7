// SPDX-License-Identifier: Apache-2.0
#include "agent/live/gpu_use.h"

#include <algorithm>

#include "base/text.h"

namespace muster::agent {
namespace {

constexpr size_t kFields = 4;
constexpr int kMostGpus = 1024;
constexpr int64_t kMostMebibytes = int64_t{1} << 30;

// The visible GPUs in the order in which a program sees them. CUDA stops at the first name that it does not know
// (docs.nvidia.com/cuda/cuda-c-programming-guide, CUDA_VISIBLE_DEVICES).
std::vector<const GpuLine*> Visible(const std::map<int, GpuLine>& gpus, const std::optional<std::string>& visible) {
  std::vector<const GpuLine*> seen;
  if (!visible) {
    for (const auto& [index, gpu] : gpus) seen.push_back(&gpu);
    return seen;
  }
  for (const std::string_view part : Split(*visible, ',')) {
    const std::string_view name = Strip(part);
    const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const auto& known) {
      const auto index = ParseInt(name);
      return index ? *index == known.first : !name.empty() && known.second.uuid.starts_with(name);
    });
    if (found == gpus.end()) break;
    seen.push_back(&found->second);
  }
  return seen;
}

}  // namespace

std::optional<GpuLine> ParseGpuLine(std::string_view line) {
  const auto parts = Split(line, ',');
  if (parts.size() != kFields) return std::nullopt;
  const auto index = ParseInt(Strip(parts[0]));
  if (!index || *index < 0 || *index >= kMostGpus) return std::nullopt;
  GpuLine gpu{static_cast<int>(*index), std::string(Strip(parts[1])), {}};
  if (const auto percent = ParseInt(Strip(parts[2])); percent && *percent >= 0 && *percent <= 100) {
    gpu.use.share = static_cast<double>(*percent) / 100;
  }
  if (const auto used = ParseInt(Strip(parts[3])); used && *used >= 0 && *used <= kMostMebibytes) {
    gpu.use.memory_bytes = *used << 20;
  }
  return gpu;
}

std::vector<GpuUse> DealGpus(const std::map<int, GpuLine>& gpus, const std::optional<std::string>& visible,
                             size_t ranks) {
  const std::vector<const GpuLine*> seen = Visible(gpus, visible);
  std::vector<GpuUse> uses(ranks);
  if (ranks == 0 || seen.empty() || seen.size() % ranks != 0) return uses;
  const size_t each = seen.size() / ranks;
  for (size_t rank = 0; rank < ranks; ++rank) {
    GpuUse& use = uses[rank];
    size_t shares = 0;
    for (size_t at = rank * each; at < (rank + 1) * each; ++at) {
      if (seen[at]->use.share) {
        use.share = use.share.value_or(0) + *seen[at]->use.share;
        ++shares;
      }
      if (seen[at]->use.memory_bytes) use.memory_bytes = use.memory_bytes.value_or(0) + *seen[at]->use.memory_bytes;
    }
    if (shares > 1) use.share = *use.share / static_cast<double>(shares);
  }
  return uses;
}

}  // namespace muster::agent
