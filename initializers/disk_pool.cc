#include "initializers/disk_pool.h"

#include <boost/asio/post.hpp>
#include <cstdlib>
#include <new>
#include <utility>

namespace muster::initializers {

DiskPool::DiskPool(boost::asio::io_context& loop, int threads, size_t blocks)
    : loop_(loop),
      threads_(static_cast<size_t>(threads)),
      memory_(static_cast<char*>(std::aligned_alloc(kBlockAlignment, blocks * kBlockBytes)), &std::free) {
  if (!memory_) throw std::bad_alloc();
  blocks_.resize(blocks);
  for (size_t i = 0; i < blocks; ++i) {
    blocks_[i].data = memory_.get() + i * kBlockBytes;
    free_.push_back(&blocks_[i]);
  }
}

DiskPool::~DiskPool() {
  threads_.join();
  done_.clear();  // while there is what they hold: blocks, strands
}

// `done` stays here: a loop that outlives the pool would end it with strands of threads that are no more.
void DiskPool::Run(Strand& strand, std::function<void()> work, std::function<void()> done) {
  const uint64_t number = ++last_;
  done_.emplace(number, std::move(done));
  boost::asio::post(strand, [this, &loop = loop_, work = std::move(work), number, alive = std::weak_ptr<bool>(alive_)] {
    work();
    boost::asio::post(loop, [this, number, alive] {
      if (!alive.expired()) Done(number);
    });
  });
}

void DiskPool::Done(uint64_t number) {
  auto done = done_.extract(number);
  done.mapped()();
}

Block* DiskPool::Take() {
  if (free_.empty()) return nullptr;
  Block* block = free_.back();  // the one used last: its memory is the warmest
  free_.pop_back();
  block->used = 0;
  return block;
}

void DiskPool::Give(Block* block) {
  free_.push_back(block);
  if (waiting_.empty() || std::exchange(waking_, true)) return;
  boost::asio::post(loop_, [this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) Wake();
  });
}

void DiskPool::Wake() {
  waking_ = false;
  // One of them may not want it any more: the next is asked.
  for (size_t asked = waiting_.size(); asked > 0 && !free_.empty(); --asked) {
    auto call = std::move(waiting_.front());
    waiting_.pop_front();
    call();
  }
}

void DiskPool::WhenFree(std::function<void()> call) { waiting_.push_back(std::move(call)); }

}  // namespace muster::initializers
