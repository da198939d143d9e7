// SPDX-License-Identifier: Apache-2.0
// A client of a Kubernetes API server. Its errors are absl codes (api_error.h). Loop thread only; nothing blocks.
//
// Rate limit: one token bucket for all writes except those of Leases. Retries by this client itself:
//   429 or 503 with Retry-After   after that time, up to `patience`
//   401                           once, if the credentials can be renewed
//   no answer at all              once, on a new connection; not for Create and not for Watch
// All other answers go to the caller: a network error as Unavailable; an error that a retry would not change (an
// untrusted certificate, an answer that is too long) as FailedPrecondition.
//
// Objects come without metadata.managedFields, and those of a list without all that no code reads (UnreadOf). Lists and
// watches of a kind that can be read from protobuf (protobuf_fields.h) are asked for in it. The answer's Content-Type
// decides how it is read, so a server may answer in JSON.
//
// `done`, and the `end` of a watch, is called once, never before the call returns. It may drop its own handle and
// destroy the client. Destroying the client cancels all calls, without calling back.
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
#include "controller/kube/client/api_error.h"
#include "controller/kube/client/cluster_access.h"
#include "controller/kube/client/protobuf_object.h"
#include "controller/kube/client/resource.h"

namespace muster::controller {

class ApiClient {
 public:
  struct Options {
    double writes_per_second = 200;
    int burst = 400;
    Duration patience = std::chrono::seconds(60);  // how long one call may follow Retry-After
    size_t longest_answer = size_t{16} << 20;      // bytes of one object or page
    size_t longest_line = size_t{2} << 20;         // bytes of a watch's event: etcd holds objects of 1.5 MiB
    int connections = 128;                         // at most; each watch and each call under way needs one
    std::string user_agent = "muster-controller";
    std::string field_owner = "muster";  // the fieldManager of all writes but ApplyAs()
  };
  using Handle = std::shared_ptr<void>;  // the call is cancelled when the last copy is destroyed
  using Done = std::function<void(StatusOr<Json>)>;

  ApiClient(boost::asio::io_context& loop, ClusterAccess access, Options options);
  ~ApiClient();
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  // `ns`: empty for resources without namespaces. `query`: without '?'. `subresource`: "status", or empty.
  Handle Get(const Resource& resource, std::string_view ns, std::string_view name, Done done);
  Handle List(const Resource& resource, std::string_view ns, std::string_view query, Done done);
  Handle Create(const Resource& resource, std::string_view ns, const Json& object, Done done);
  // Answers as Create does, and stores nothing.
  Handle TryCreate(const Resource& resource, std::string_view ns, const Json& object, Done done);
  // Server-side apply, forced.
  Handle Apply(const Resource& resource, std::string_view ns, std::string_view name, std::string_view subresource,
               const Json& object, Done done);
  // Server-side apply by another fieldManager, `owner`, not forced. Aborted: a field of `object` has another owner.
  Handle ApplyAs(std::string_view owner, const Resource& resource, std::string_view ns, std::string_view name,
                 std::string_view subresource, const Json& object, Done done);
  // A JSON merge patch.
  Handle Merge(const Resource& resource, std::string_view ns, std::string_view name, std::string_view subresource,
               const Json& patch, Done done);
  Handle Replace(const Resource& resource, std::string_view ns, std::string_view name, const Json& object, Done done);
  // Deletes with propagationPolicy Background. `uid`: a precondition; empty: none. kNone: at once, without
  // waiting for the node of a pod.
  enum class Grace { kOwn, kNone };
  Handle Delete(const Resource& resource, std::string_view ns, std::string_view name, std::string_view uid, Grace grace,
                Done done);

  // Starts a watch. Calls `line` for each event with its line, or its frame of protobuf, in order, and finally `end`
  // once. `whole`: false for one longer than `longest_line`: it is its beginning. Begins at the resourceVersion in
  // `query`. Adds to `query`: watch, bookmarks, and a random time of 5 to 10 minutes after which the
  // server ends the watch. Drops a line that the connection cuts off.
  struct WatchEvents {
    std::function<void(std::string_view line, bool whole, Encoding encoding)> line;
    std::function<void(Status)> end;  // OK: the server ended the watch in order
  };
  Handle Watch(const Resource& resource, std::string_view ns, std::string_view query, WatchEvents events);

  struct Counts {
    uint64_t reads = 0, watches = 0, writes = 0;     // calls
    uint64_t throttled = 0;                          // answers 429 and 503
    uint64_t failed = 0;                             // calls that ended with an error
    std::map<std::string, uint64_t> writes_by_kind;  // "create jobs", "apply trainjobs/status"
  };
  const Counts& counts() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::controller
