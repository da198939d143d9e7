// SPDX-License-Identifier: Apache-2.0
// The engine: moves the bytes of a list of files from a provider into the staging folder, many ranges in parallel. Each
// range is hashed as it passes and compared with the hash that the store publishes.
//
//   list -> [look] -> open, read back what an earlier start left -> ranges -> verify -> whole in the staging folder
//
// A small file is one request and one write. A large file is cut into ranges. The thread that receives a range hashes
// and writes it (range_intake.h). A hash that needs the bytes in order is computed by the pool, behind the writes
// (file_hash.h). Memory is bounded by the blocks of the pool, however much there is to move.
//
// A failed range is requested again by the rules of http/retry.h, from the byte at which it ended. A file that has a
// new version by now is looked at again and begun anew. A file with a wrong hash is fetched once more as a whole; then
// the run fails and nothing is published.
//
// Loop thread only. Calls `end` once: after the last file, or with the first error that no retry could cure.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "http/client.h"
#include "http/retry.h"
#include "initializers/disk/disk_pool.h"
#include "initializers/facts/provider.h"
#include "initializers/target/staging.h"
#include "initializers/transfer/mover.h"
#include "initializers/transfer/range_size.h"
#include "initializers/transfer/request_limit.h"

namespace muster::initializers {

struct TransferOptions {
  std::string source;      // identity of what is brought in, for the names of staged files
  RangeLimits range;       // size of one request of a large file
  bool verify = true;      // false: sizes only
  bool direct = true;      // bypass the page cache for files from kDirectFrom on
  int cores = 2;           // CPU cores that it may keep busy
  bool sync_each = false;  // sync each file when it is whole; else one sync before publishing
  http::Limits limits;
  http::RetryRules retry;
  RequestLimitOptions request_limit;
};

// The objects that a Transfer uses; they outlive it.
struct TransferContext {
  http::Transport& small;  // for small files: on the loop, where many requests run at a time
  http::Transport& large;  // for the ranges of large files
  Provider& provider;
  Staging& staging;
  DiskPool& pool;
};

inline constexpr uint64_t kDirectFrom = uint64_t{64} << 20;  // bytes

class Transfer final : public Mover {
 public:
  Transfer(boost::asio::io_context& loop, TransferContext context, TransferOptions options, MoveEvents events);
  ~Transfer() override;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void Add(const std::vector<Entry>& entries) override;
  void EndOfList() override;
  const MoveCounts& counts() const override;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::initializers
