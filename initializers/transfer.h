// The engine: moves the bytes of a list of files from a provider into the staging folder, many ranges at a time, each
// hashed as it passes and held against what the store publishes.
//
//   list -> [look] -> open, read back what an earlier start left -> ranges -> verify -> whole in the staging folder
//
// A small file is one request and one write. A large one is cut into ranges, each hashed and written by the thread that
// receives it (range_intake.h); a hash that can only be taken in order is taken by the pool, behind the writes
// (file_hash.h). Memory is the pool's blocks, whatever there is to move.
//
// A range that fails is asked for again by retry.h's rules, from the byte where it ended. A file that turns out to be
// another version now is looked at again and begun anew; one whose hash is wrong is fetched once more as a whole; after
// that the run fails and nothing is published.
//
// Loop thread only. Ends once, with the first error that cannot be helped.
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
#include "initializers/disk_pool.h"
#include "initializers/mover.h"
#include "initializers/provider.h"
#include "initializers/range_size.h"
#include "initializers/request_limit.h"
#include "initializers/staging.h"

namespace muster::initializers {

struct TransferOptions {
  std::string source;      // identity of what is brought in, for the names of staged files
  RangeLimits range;       // of one request of a large file
  bool verify = true;      // false: sizes only
  bool direct = true;      // past the page cache, for files from kDirectFrom on
  int cores = 2;           // that it may keep busy
  bool sync_each = false;  // each file on the disk as it is whole; else one sync before publishing
  http::Limits limits;
  http::RetryRules retry;
  RequestLimitOptions request_limit;
};

// What it works with; all of it outlives it.
struct TransferMeans {
  http::Transport& small;  // of small files: on the loop, where many are asked for at a time
  http::Transport& large;  // of the ranges of large ones
  Provider& provider;
  Staging& staging;
  DiskPool& pool;
};

inline constexpr uint64_t kDirectFrom = uint64_t{64} << 20;  // bytes

class Transfer final : public Mover {
 public:
  Transfer(boost::asio::io_context& loop, TransferMeans means, TransferOptions options, MoveEvents events);
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
