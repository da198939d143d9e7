// SPDX-License-Identifier: Apache-2.0
// One run: brings a source into a target folder. It lists the source, compares the list with the target, moves what is
// missing, publishes, and reports the result.
//
//   manifest is complete and the source cannot have changed -> done, without a request
//   lease (lease.h) -> list -> keep the files that the manifest has in this very version, transfer the rest
//   [-> unpack] -> publish -> manifest
//
// On a read-only target no lease is taken: it lists, compares, and fails at the first file that has to be moved.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "initializers/archives/unpack.h"
#include "initializers/facts/settings.h"
#include "initializers/facts/source.h"
#include "initializers/target/lease.h"
#include "initializers/target/manifest.h"
#include "initializers/transfer/transfer.h"

namespace muster::initializers {

struct InitializeOptions {
  Role role = Role::kDataset;
  std::string uri;
  std::string target;
  std::vector<std::string> include, ignore;  // patterns on the path below the source (entry_path.h)
  bool dry_run = false;
  bool anonymous = false;
  bool allow_html = false;
  std::string version_id;
  std::vector<std::string> claims;  // "NAME=DIR" (local_folder.h)
  bool hard_links = false;          // for a local folder: hard links instead of copies
  bool extract = false;             // unpack archives (archive_reader.h, IsArchiveName)
  UnpackLimits unpack;
  bool hub_cache = false;  // the target is the folder of an hf:// repository in a hub cache
  int threads = 2;         // threads for disk work; as many again for unpacking
  int receivers = 2;       // threads that receive and write large files
  size_t blocks = 64;      // of kBlockBytes each: the buffers of a run
  LeaseRules lease;
  std::string then;  // command to run after a publication (after_publish.h); empty: none
  http::Options http;
  TransferOptions transfer;
};

struct InitializeResult {
  bool unchanged = false;  // nothing was moved, because all files were there
  bool then_due = false;   // `then` has not ended with 0 since the last publication
  std::string source;
  std::string target;
  MoveCounts counts;
  uint64_t files = 0, bytes = 0;                    // of the whole source
  uint64_t kept_files = 0;                          // files that were there already, in this version
  uint64_t planned_files = 0, planned_bytes = 0;    // dry run: what would be moved
  uint64_t unpacked_files = 0, unpacked_bytes = 0;  // unpacked from archives by this run
  uint64_t unverified_files = 0;                    // whose hash was not checked, kept files included
  bool verify = true;  // true: unverified files are those without a published hash; false: --verify=size
  double seconds = 0;
};

class Initialize {
 public:
  struct Planned {
    std::string path;
    uint64_t bytes = 0;
    uint64_t staged_bytes = 0;  // already fetched by an earlier start
  };
  struct Events {
    std::function<void(const std::string&)> say;  // a sentence
    std::function<void(const Planned&)> planned;  // dry run: a file that would be moved
    std::function<void(StatusOr<InitializeResult>)> end;
  };
  Initialize(boost::asio::io_context& loop, InitializeOptions options, Environment environment, Events events);
  ~Initialize();
  Initialize(const Initialize&) = delete;
  Initialize& operator=(const Initialize&) = delete;

  void Begin();
  // The state of the run so far, also of a run that failed. Counts of the source cover what has been listed.
  InitializeResult so_far() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::initializers
