// One action of a decision, carried out on the API server. Loop thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "controller/kube/api_client.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

// Where the answers to writes go: they count as events of a watch.
class ObjectCache {
 public:
  virtual void Put(const Resource& resource, const Json& object) = 0;  // of a kind that it does not keep: nothing
  virtual void Remove(const Resource& resource, const std::string& ns, const std::string& name) = 0;

 protected:
  ~ObjectCache() = default;
};

// The job that the actions are about.
struct ActionOwner {
  Resource resource;
  std::string kind;
  Meta meta;
};

// OK: it is so now, by this call or an earlier one; `cache` knows it. FailedPrecondition: somebody else's object has
// the name that is needed; the message says whose it is. Aborted, Unavailable: another pass may succeed. Any other
// error is the server's refusal.
boost::asio::awaitable<Status> CarryOut(ApiClient& client, ObjectCache& cache, const ActionOwner& owner,
                                        const Action& action);

}  // namespace muster::controller
