// TrainingRuntimes and ClusterTrainingRuntimes as watches bring them: for plans, and for admission reviews, which come
// to replicas that do not lead, too. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/api/train_job.h"
#include "controller/kube/api_client.h"
#include "controller/kube/informer.h"

namespace muster::controller {

class RuntimeCache {
 public:
  struct Events {
    std::function<void(const Meta&)> changed;  // one is new, or other than before
    std::function<void()> synced;              // once: all are listed
  };
  // `ns`: of TrainingRuntimes; empty: all namespaces. `client` outlives it.
  RuntimeCache(boost::asio::io_context& loop, ApiClient& client, std::string ns);

  void Begin();  // the second time: nothing
  bool synced() const { return unsynced_ == 0; }
  void Listen(Events events) { events_ = std::move(events); }  // in the place of who listened before

  // For a TrainJob in `ns`; null: there is none, or it is of another kind. Without its resourceVersion.
  const Json* Find(const RuntimeRef& ref, const std::string& ns) const;

 private:
  void Put(const Json& object);

  Events events_;
  std::map<std::string, Json> runtimes_;  // by KeyOf
  std::vector<std::unique_ptr<Informer>> informers_;
  int unsynced_ = 2;
  bool begun_ = false;
};

// The kind of a runtime as URLs have it; null: no kind of runtime.
const Resource* RuntimeResource(const RuntimeRef& ref);

}  // namespace muster::controller
