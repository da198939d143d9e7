// SPDX-License-Identifier: Apache-2.0
// A place that data comes from. A Catalogue lists what there is. A Provider is a Catalogue over HTTP (s3, gs, the hub,
// a web server); it also makes the requests and interprets the answers. It moves no bytes (transfer.h does) and decides
// no retry of a download (http/retry.h does).
//
// Loop thread only. Every asynchronous call returns a handle: when its last copy goes, the call ends without a
// callback. A provider retries its own lists and Looks: an error that it gives is final. PermissionDenied, NotFound,
// InvalidArgument, FailedPrecondition: a retry is of no use; Unavailable, DeadlineExceeded, DataLoss: after the last
// retry.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "http/client.h"
#include "http/refusal.h"
#include "initializers/facts/digest.h"

namespace muster::initializers {

inline constexpr int kMostRedirects = 5;  // followed for one file, or for one answer about it

// A file to bring in.
struct Entry {
  std::string path;     // where it lands below the target (entry_path.h)
  std::string key;      // the provider's own name of the file
  uint64_t size = 0;    // bytes
  std::string version;  // ETag, generation, git id; empty: no version is known, so that no part of it can be kept
  std::optional<Expectation> expected;
  bool known = true;     // false: Look() can find more (its hash); that is worth a request for a large file
  bool doubted = false;  // its bytes did not match its hash: Look() must make sure of the hash, at any cost
  bool ranges = true;    // false: its server sends only whole files
  std::optional<std::string> content;  // the bytes, at most kBlockBytes, if the listing has them: no request
};

struct ByteRange {
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t end() const { return offset + length; }
  bool operator==(const ByteRange&) const = default;
};

// What the head of an answer to a request for bytes means.
struct Reception {
  enum class Kind {
    kBytes,      // exactly the range follows
    kElsewhere,  // request `url` instead, without our credentials; no url: Prepare again: it knows where
    kFailed,     // read the body (at most 64 KiB), then call Explain
  };
  Kind kind = Kind::kFailed;
  std::string url;
  std::optional<Expectation> expected;  // hash of the whole file if the head has it
};

class Catalogue {
 public:
  struct Listing {
    std::function<void(std::vector<Entry>)> page;  // pages as they arrive; the receiver checks the paths
    std::function<void(Status)> end;               // called once, as the last call
  };
  virtual ~Catalogue() = default;
  using Handle = std::shared_ptr<void>;

  virtual Handle List(Listing listing) = 0;

  // For the manifest.
  virtual std::string endpoint() const = 0;
  virtual std::string version() const = 0;  // of the whole source, once listed; empty: it has none
};

class Provider : public Catalogue {
 public:
  virtual Handle Look(const Entry& entry, std::function<void(StatusOr<Entry>)> looked) = 0;
  // Makes a request for the range, for the entry's version only, with a fresh signature. If the range is the whole
  // entry, the request may leave out the Range header.
  virtual Handle Prepare(const Entry& entry, ByteRange range, std::function<void(StatusOr<http::Request>)> ready) = 0;
  virtual Reception Receive(const Entry& entry, ByteRange range, const http::ResponseHead& head) = 0;
  virtual http::Refusal Explain(const Entry& entry, const http::ResponseHead& head, std::string_view body) = 0;
  // False after a server has answered a range request with the whole file: then files are requested whole.
  virtual bool GivesRanges() const { return true; }
};

}  // namespace muster::initializers
