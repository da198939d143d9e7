// A place that data comes from. A Catalogue knows what there is; a Provider is one over HTTP (s3, gs, the hub, a web
// server), which also knows how to ask for it and what the answers mean. It moves no bytes (transfer.h does) and
// decides no retry (retry.h does).
//
// Loop thread only. Every asynchronous call gives a handle: when the last copy goes, the call ends without a word. A
// provider retries its own lists and looks; a Status it gives is final, its code says of which kind: PermissionDenied,
// NotFound, InvalidArgument, FailedPrecondition are fatal; Unavailable, DeadlineExceeded and DataLoss were retried
// enough.
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
#include "initializers/digest.h"

namespace muster::initializers {

// A file to be brought in.
struct Entry {
  std::string path;     // where it lands below the target (entry_path.h)
  std::string key;      // the provider's own name of it
  uint64_t size = 0;    // bytes
  std::string version;  // pins it: ETag, generation, git id; empty: nothing does, so that no part of it can be kept
  std::optional<Expectation> expected;
  bool known = true;     // false: Look() has more to say (its hash), which is worth a request for a large file
  bool doubted = false;  // its bytes were not what its hash says: Look() makes sure of the hash, whatever it costs
  bool ranges = true;    // false: its server gives all of it or nothing
  std::optional<std::string> content;  // `size` bytes, kBlockBytes at most, where the listing has them: not asked for
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
    kBytes,      // the range follows, all of it and nothing else
    kElsewhere,  // ask `url` instead, without our credentials; no url: Prepare again, it has learnt where
    kFailed,     // read the body (64 KiB at most), then Explain
  };
  Kind kind = Kind::kFailed;
  std::string url;
  std::optional<Expectation> expected;  // of the whole file, if the head tells
};

class Catalogue {
 public:
  struct Listing {
    std::function<void(std::vector<Entry>)> page;  // as they come; paths are checked by who hears it
    std::function<void(Status)> end;               // once, the last
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
  // A request for the range, pinned to the entry's version and signed for now. A range that is the whole entry may be
  // asked for without saying so.
  virtual Handle Prepare(const Entry& entry, ByteRange range, std::function<void(StatusOr<http::Request>)> ready) = 0;
  virtual Reception Receive(const Entry& entry, ByteRange range, const http::ResponseHead& head) = 0;
  virtual http::Refusal Explain(const Entry& entry, const http::ResponseHead& head, std::string_view body) = 0;
  // False once a server of the source has answered a range with the whole file: files are asked for whole from then on.
  virtual bool GivesRanges() const { return true; }
};

}  // namespace muster::initializers
