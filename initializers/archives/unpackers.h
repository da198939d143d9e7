// Those that unpack (unpack.h) beside the transfer: threads of the pool, in the order of archive_queue.h, and the
// memory for windows that they share.
//
// Loop thread only. Destroyed, it tells them to stop and says nothing more; the pool waits for them.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "initializers/archives/archive_queue.h"
#include "initializers/archives/unpack.h"
#include "initializers/disk_pool.h"
#include "initializers/mover.h"
#include "initializers/staging.h"

namespace muster::initializers {

class Unpackers {
 public:
  using Done = std::function<void(const MovedFile& archive, StatusOr<Unpacked> unpacked)>;
  // `count` at a time. The pool is destroyed before `staging`. `done`: for each archive, on the loop.
  Unpackers(DiskPool& pool, int count, Staging& staging, UnpackOptions options, Done done);
  ~Unpackers();
  Unpackers(const Unpackers&) = delete;
  Unpackers& operator=(const Unpackers&) = delete;

  void Add(MovedFile archive);
  bool idle() const { return queue_.idle(); }
  void Stop();  // whoever has begun ends soon, Cancelled; nobody else begins

 private:
  struct Shared;

  void Begin();  // all that may

  DiskPool& pool_;
  const Done done_;
  ArchiveQueue queue_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace muster::initializers
