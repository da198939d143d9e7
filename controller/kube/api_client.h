// Requests to a Kubernetes API server, with its errors as types (api_error.h). Loop thread only; nothing blocks.
//
// Writes are paced by one token bucket (client-side rate limit); reads, watches and Leases are not. A 429 or 503 with
// Retry-After is asked again after that time, up to `patience`; a 401 once more, where the credentials can be renewed;
// once more by a new connection what got no answer at all, but for what is created and for watches.
// All else is answered as it came: who asked decides. What the network fails at is Unavailable; what asking again does
// not change (a certificate that is not trusted, an answer that is too long) is FailedPrecondition.
//
// Objects come without metadata.managedFields.
//
// A callback is called once (a watch's `end`), never before the call returns. It may drop its own handle and end the
// client. Destroying the client ends every call without a word.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/status.h"
#include "controller/kube/api_error.h"
#include "controller/kube/cluster_access.h"
#include "controller/kube/resource.h"

namespace muster::controller {

class ApiClient {
 public:
  struct Options {
    double writes_per_second = 200;
    int burst = 400;
    Duration patience = std::chrono::seconds(60);  // of one call that is told to come back later
    size_t longest_answer = size_t{64} << 20;      // bytes of one object, page, or line of a watch
    int connections = 128;                         // at most: one for each watch, and for each call under way
    std::string user_agent = "muster-controller";
    std::string field_owner = "muster";  // of what is written
  };
  using Handle = std::shared_ptr<void>;  // the call is cancelled when its last copy goes
  using Done = std::function<void(StatusOr<Json>)>;

  ApiClient(boost::asio::io_context& loop, ClusterAccess access, Options options);
  ~ApiClient();
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  // `ns` and `name` as far as the resource has them; `query` without '?'; `subresource`: "status", or empty.
  Handle Get(const Resource& resource, std::string_view ns, std::string_view name, Done done);
  Handle List(const Resource& resource, std::string_view ns, std::string_view query, Done done);
  Handle Create(const Resource& resource, std::string_view ns, const Json& object, Done done);
  // Server-side apply, forced.
  Handle Apply(const Resource& resource, std::string_view ns, std::string_view name, std::string_view subresource,
               const Json& object, Done done);
  // A JSON merge patch.
  Handle Merge(const Resource& resource, std::string_view ns, std::string_view name, std::string_view subresource,
               const Json& patch, Done done);
  Handle Replace(const Resource& resource, std::string_view ns, std::string_view name, const Json& object, Done done);
  // In the background (propagationPolicy). `uid`: a precondition; empty: none. kNone: at once, without waiting for the
  // node of a pod.
  enum class Grace { kOwn, kNone };
  Handle Delete(const Resource& resource, std::string_view ns, std::string_view name, std::string_view uid, Grace grace,
                Done done);

  // A watch: `line` for each event, whole lines, in order; `end` once, the last. Begins at `query`'s resourceVersion;
  // the rest of it is added here: watch, bookmarks, and a time after which the server ends it (5 to 10 minutes, at
  // random). What the connection leaves of a line is dropped.
  struct WatchEvents {
    std::function<void(std::string_view line)> line;
    std::function<void(Status)> end;  // OK: the server ended it in peace
  };
  Handle Watch(const Resource& resource, std::string_view ns, std::string_view query, WatchEvents events);

  struct Counts {
    uint64_t reads = 0, watches = 0, writes = 0;     // calls
    uint64_t throttled = 0;                          // answers that told a call to come back later
    uint64_t failed = 0;                             // calls that ended with an error
    std::map<std::string, uint64_t> writes_by_kind;  // "create jobs", "apply trainjobs/status"
  };
  const Counts& counts() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::controller
