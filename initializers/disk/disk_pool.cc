// SPDX-License-Identifier: Apache-2.0
#include "initializers/disk/disk_pool.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace muster::initializers {

DiskPool::DiskPool(boost::asio::io_context& loop, int threads, size_t blocks)
    : loop_(loop), blocks_(loop, blocks), threads_(static_cast<size_t>(threads)) {}

DiskPool::~DiskPool() {
  threads_.join();
  done_.clear();  // now, while the blocks and strands that they hold still exist
}

// `done` is stored here: a loop that outlives the pool would destroy it, with its strands, after the threads.
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

}  // namespace muster::initializers
