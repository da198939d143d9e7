// SPDX-License-Identifier: Apache-2.0
#include "initializers/disk/blocks.h"

#include <boost/asio/post.hpp>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace muster::initializers {

struct Blocks::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& on, size_t count)
      : loop(&on), memory(static_cast<char*>(std::aligned_alloc(kBlockAlignment, count * kBlockBytes)), &std::free) {
    if (!memory) throw std::bad_alloc();
    blocks.resize(count);
    for (size_t i = 0; i < count; ++i) {
      blocks[i].data = memory.get() + i * kBlockBytes;
      free.push_back(&blocks[i]);
    }
  }

  std::shared_ptr<Block> Lend() {  // call with the lock held and a free block
    Block* block = free.back();    // the last one returned: its memory is most likely cached
    free.pop_back();
    block->used = 0;
    return {block, [state = shared_from_this()](Block* back) { state->Return(back); }};
  }
  void Return(Block* block) {
    const std::lock_guard lock(mutex);
    free.push_back(block);
    WakeSoon();
  }
  void WakeSoon() {  // call with the lock held
    if (closed || waiting.empty() || free.empty() || std::exchange(waking, true)) return;
    boost::asio::post(*loop, [weak = weak_from_this()] {
      if (auto state = weak.lock()) state->Wake();
    });
  }
  void Wake() {
    std::unique_lock lock(mutex);
    waking = false;
    while (!waiting.empty() && !free.empty()) {
      const auto given = std::move(waiting.front());
      waiting.pop_front();
      auto block = Lend();
      lock.unlock();
      given(std::move(block));
      lock.lock();
    }
  }

  boost::asio::io_context* const loop;
  std::mutex mutex;
  const std::unique_ptr<char, void (*)(void*)> memory;
  std::vector<Block> blocks;
  std::vector<Block*> free;
  std::deque<Given> waiting;
  bool waking = false;
  bool closed = false;
};

Blocks::Blocks(boost::asio::io_context& loop, size_t count) : state_(std::make_shared<State>(loop, count)) {}

Blocks::~Blocks() {
  std::deque<Given> waiting;  // destroyed after the lock is released: callbacks may hold blocks
  const std::lock_guard lock(state_->mutex);
  state_->closed = true;
  waiting.swap(state_->waiting);
}

size_t Blocks::count() const { return state_->blocks.size(); }

std::shared_ptr<Block> Blocks::Take() {
  const std::lock_guard lock(state_->mutex);
  if (state_->free.empty() || !state_->waiting.empty()) return nullptr;
  return state_->Lend();
}

void Blocks::WhenFree(Given given) {
  const std::lock_guard lock(state_->mutex);
  state_->waiting.push_back(std::move(given));
  state_->WakeSoon();
}

}  // namespace muster::initializers
