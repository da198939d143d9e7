// SPDX-License-Identifier: Apache-2.0
// Carries out one action of a decision on the API server. Loop thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "controller/kube/client/api_client.h"
#include "controller/kube/jobs/master_key.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

// Receives the answers to writes, in the same way as events of a watch.
class ObjectCache {
 public:
  // The answer to a request. Ignores kinds that it does not keep, and what its watch has told of already.
  virtual void Put(const Resource& resource, const Json& object) = 0;
  virtual void Remove(const Resource& resource, const std::string& ns, const std::string& name) = 0;

 protected:
  ~ObjectCache() = default;
};

// The job that the action belongs to.
struct ActionOwner {
  Resource resource;
  std::string kind;
  Meta meta;
};

// OK: the action is done, by this call or an earlier one, and `cache` has the result. FailedPrecondition: an object of
// another owner has the name; the message says whose it is. Aborted, Unavailable: a later pass may succeed. Any other
// error is a refusal by the server.
boost::asio::awaitable<Status> CarryOut(ApiClient& client, MasterKey& master_key, ObjectCache& cache,
                                        const ActionOwner& owner, const Action& action);

}  // namespace muster::controller
