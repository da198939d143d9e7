// SPDX-License-Identifier: Apache-2.0
// Unpacks archives (unpack.h) beside the transfer: on threads of the pool, in archive_queue.h's order, sharing windows.
//
// Loop thread only. The destructor stops all, without a call of `done`; the pool's destructor waits for the threads.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "initializers/archives/archive_queue.h"
#include "initializers/archives/unpack.h"
#include "initializers/disk/disk_pool.h"
#include "initializers/target/staging.h"
#include "initializers/transfer/mover.h"

namespace muster::initializers {

class Unpackers {
 public:
  using Done = std::function<void(const MovedFile& archive, StatusOr<Unpacked> unpacked)>;
  // `count`: archives in parallel. Destroy the pool before `staging`. `done`: for each archive, on the loop.
  Unpackers(DiskPool& pool, int count, Staging& staging, UnpackOptions options, Done done);
  ~Unpackers();
  Unpackers(const Unpackers&) = delete;
  Unpackers& operator=(const Unpackers&) = delete;

  void Add(MovedFile archive);
  bool idle() const { return queue_.idle(); }
  void Stop();  // running archives end soon with Cancelled; no other begins

 private:
  struct Shared;

  void Begin();  // begins all archives that may begin

  DiskPool& pool_;
  const Done done_;
  ArchiveQueue queue_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace muster::initializers
