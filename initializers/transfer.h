// The engine: moves the bytes of a list of files from a provider into the staging folder, many ranges at a time, each
// hashed as it passes and held against what the store publishes.
//
//   list -> [look] -> open, read back what an earlier start left -> ranges -> verify -> whole in the staging folder
//
// A small file is one request and one write. A large one is cut into ranges; those of a file whose hash can only be
// taken in order are hashed behind the writes, from the page cache. Memory is the pool's blocks, whatever there is to
// move.
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
#include "initializers/disk_pool.h"
#include "initializers/http.h"
#include "initializers/pace.h"
#include "initializers/provider.h"
#include "initializers/retry.h"
#include "initializers/staging.h"

namespace muster::initializers {

struct TransferOptions {
  std::string source;         // identity of what is brought in, for the names of staged files
  uint64_t range = 16 << 20;  // bytes of one request of a large file; a multiple of kBlockBytes
  bool verify = true;         // false: sizes only
  bool direct = true;         // past the page cache, for files from kDirectFrom on
  bool sync_each = false;     // each file on the disk as it is whole; else one sync before publishing
  HttpLimits limits;
  RetryRules retry;
  PaceLimits pace;
};

inline constexpr uint64_t kDirectFrom = uint64_t{64} << 20;  // bytes

struct TransferredFile {
  Entry entry;            // as it is now
  std::string name;       // in the staging folder
  std::string hash;       // Describe()d: what was computed; empty with verify off
  bool verified = false;  // the store published it
};

struct TransferCounts {
  uint64_t files = 0, files_done = 0;
  uint64_t bytes = 0, bytes_done = 0;  // of the files; read back ones are done
  uint64_t bytes_received = 0;         // over the network, again where it had to be
  uint64_t bytes_kept = 0;             // left by an earlier start
  uint64_t requests = 0, retries = 0, changed = 0, refetched = 0;
};

class Transfer {
 public:
  struct Events {
    std::function<void(TransferredFile)> file;         // each, as it is whole
    std::function<void(const std::string& text)> say;  // retries and the like, a sentence
    std::function<void(Status)> end;                   // once, the last; posted
  };

  Transfer(boost::asio::io_context& loop, HttpClient& http, Provider& provider, Staging& staging, DiskPool& pool,
           TransferOptions options, Events events);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void Add(std::vector<Entry> entries);
  void EndOfList();  // nothing more is added
  const TransferCounts& counts() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::initializers
