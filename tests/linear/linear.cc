// SPDX-License-Identifier: Apache-2.0
#include "tests/linear/linear.h"

#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>

namespace {

// Of this thread.
thread_local size_t taken = 0, most_taken = 0;

void* Take(size_t bytes, size_t alignment) {
  void* memory =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(std::max<size_t>(bytes, 1))
          : std::aligned_alloc(alignment, (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  taken += malloc_usable_size(memory);
  most_taken = std::max(most_taken, taken);
  return memory;
}

void Free(void* memory) {
  taken -= std::min(taken, malloc_usable_size(memory));  // it may be of another thread
  std::free(memory);
}

}  // namespace

void* operator new(size_t bytes) { return Take(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) { return Take(bytes, static_cast<size_t>(alignment)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return Take(bytes, 1);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Free(memory); }

namespace muster {
namespace {

constexpr size_t kMore = 8, kMostTime = 36, kMostMemory = 24;
constexpr std::chrono::nanoseconds kEnough = std::chrono::milliseconds(3), kLeast = std::chrono::microseconds(100);
constexpr size_t kFirstParts = 64, kLongestFirst = size_t{256} << 10;  // bytes
constexpr size_t kLeastMemory = size_t{64} << 10;
constexpr int kTries = 6;

struct Cost {
  std::chrono::nanoseconds time;
  size_t memory = 0;
};

std::chrono::nanoseconds CpuTime() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

Cost CostOf(const LinearRow& row, const std::string& input) {
  const size_t before = taken;
  most_taken = taken;
  const std::chrono::nanoseconds begun = CpuTime();
  row.parse(input);
  return {.time = CpuTime() - begun, .memory = most_taken - before};
}

}  // namespace

TEST_P(Linear, TwiceTheInputCostsTwiceTheTimeAndMemory) {
  const LinearRow& row = GetParam();
  size_t parts = kFirstParts;
  std::string input = row.input(parts);
  Cost less = CostOf(row, input);
  while (less.time < kEnough && input.size() < kLongestFirst) {
    parts *= 2;
    input = row.input(parts);
    less = CostOf(row, input);
  }
  const std::string larger = row.input(kMore * parts);
  Cost more = CostOf(row, larger);
  const auto is_linear = [&] { return more.time <= kMostTime * std::max(less.time, kLeast); };
  for (int tries = 1; tries < kTries && !is_linear(); ++tries) {
    less.time = std::min(less.time, CostOf(row, input).time);
    more.time = std::min(more.time, CostOf(row, larger).time);
  }
  EXPECT_TRUE(is_linear()) << row.target << ", " << row.what << ": " << input.size() << " bytes take "
                           << less.time.count() / 1000 << " us, " << larger.size() << " bytes take "
                           << more.time.count() / 1000 << " us of CPU time";
  EXPECT_LE(more.memory, kMostMemory * std::max(less.memory, kLeastMemory))
      << row.target << ", " << row.what << ": bytes of memory for " << larger.size() << " bytes";
}

}  // namespace muster
