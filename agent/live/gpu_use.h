// SPDX-License-Identifier: Apache-2.0
// How busy the GPUs of this node are, by the lines of nvidia-smi. Pure.
//
//   nvidia-smi --query-gpu=index,uuid,utilization.gpu,memory.used --format=csv,noheader,nounits --loop=1
//   0, GPU-5b1c..., 97, 61234
// (docs.nvidia.com/deploy/nvidia-smi). In a container it lists only the GPUs that the container has. "[N/A]" stands for
// what a GPU does not tell, as with MIG.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

struct GpuUse {
  std::optional<double> share;          // 0 to 1
  std::optional<int64_t> memory_bytes;  // in use
  bool operator==(const GpuUse&) const = default;
};

struct GpuLine {
  int index = 0;
  std::string uuid;
  GpuUse use;
};
// nullopt: no such line.
std::optional<GpuLine> ParseGpuLine(std::string_view line);

// The use of each local rank's GPUs. `visible`: CUDA_VISIBLE_DEVICES of the workers, which names GPUs by index or uuid;
// nullopt: all. Local rank i of n has the i-th n-th part of the visible GPUs, as with torchrun; empty where these
// cannot be dealt out evenly. Of several GPUs the mean share counts, and the sum of the memory.
std::vector<GpuUse> DealGpus(const std::map<int, GpuLine>& gpus, const std::optional<std::string>& visible,
                             size_t ranks);

}  // namespace muster::agent
