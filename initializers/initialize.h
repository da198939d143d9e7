// One run: a source into a target folder. Lists, compares with what is there, moves what is missing, publishes, and
// says how it went.
//
//   manifest says complete and nothing can have changed -> done, nothing was asked
//   lease (lease.h) -> list -> keep what the manifest has in this very version, transfer the rest [-> unpack] ->
//   publish -> manifest
//
// Where nothing can be written no lease is taken: it lists and compares, and fails at the first that has to be moved.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "initializers/archives/unpack.h"
#include "initializers/lease.h"
#include "initializers/manifest.h"
#include "initializers/settings.h"
#include "initializers/source.h"
#include "initializers/transfer.h"

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
  bool hard_links = false;          // of a folder's files, in place of copies
  bool extract = false;             // unpack archives (archive_reader.h, IsArchiveName)
  UnpackLimits unpack;
  bool hub_cache = false;  // the target is the folder of an hf:// repository in a hub cache
  int threads = 2;         // that wait for the disk; as many that unpack
  int receivers = 2;       // threads that receive large files, and write them
  size_t blocks = 64;      // of kBlockBytes: the memory of a run
  LeaseRules lease;
  std::string then;  // the command that is due after a publication (after_publish.h); empty: none
  http::Options http;
  TransferOptions transfer;
};

struct InitializeResult {
  bool unchanged = false;  // nothing was moved: all of it was there
  bool then_due = false;   // the command has not yet ended with 0 since the last publication
  std::string source;
  std::string target;
  MoveCounts counts;
  uint64_t files = 0, bytes = 0;                    // of the whole source
  uint64_t kept_files = 0;                          // that were there, in this version
  uint64_t planned_files = 0, planned_bytes = 0;    // of a dry run: what would be moved
  uint64_t unpacked_files = 0, unpacked_bytes = 0;  // by this run, out of archives
  uint64_t unverified_files = 0;                    // whose hash was not checked, also of kept ones
  bool verify = true;                               // it was wanted: the store publishes no hash of those
  double seconds = 0;
};

class Initialize {
 public:
  struct Planned {
    std::string path;
    uint64_t bytes = 0;
    uint64_t staged_bytes = 0;  // of them, that an earlier start has brought
  };
  struct Events {
    std::function<void(const std::string&)> say;  // a sentence
    std::function<void(const Planned&)> planned;  // of a dry run: a file that would be moved
    std::function<void(StatusOr<InitializeResult>)> end;
  };
  Initialize(boost::asio::io_context& loop, InitializeOptions options, Environment environment, Events events);
  ~Initialize();
  Initialize(const Initialize&) = delete;
  Initialize& operator=(const Initialize&) = delete;

  void Begin();
  // Where it is, or was when it ended: also of a run that fails. Of the source what has been listed.
  InitializeResult so_far() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::initializers
