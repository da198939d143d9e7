// SPDX-License-Identifier: Apache-2.0
// A cache of TrainingRuntimes and ClusterTrainingRuntimes, as watches bring them. Plans use it, and admission reviews,
// which replicas that do not lead answer too. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/api/packed_json.h"
#include "controller/api/train_job.h"
#include "controller/kube/client/api_client.h"
#include "controller/kube/client/informer.h"

namespace muster::controller {

class RuntimeCache {
 public:
  struct Events {
    std::function<void(const Meta&)> changed;  // a runtime is new or has changed
    std::function<void()> synced;              // called once, when all are listed
  };
  // `ns`: of TrainingRuntimes; empty: all namespaces. `client` must outlive the cache.
  RuntimeCache(boost::asio::io_context& loop, ApiClient& client, const std::string& ns);

  void Begin();  // a second call does nothing
  bool synced() const { return unsynced_ == 0; }
  void Listen(Events events) { events_ = std::move(events); }  // replaces the last listener

  // The runtime `ref` for a TrainJob in `ns`, without resourceVersion. nullopt: it does not exist, or is of another
  // kind.
  std::optional<Json> Find(const RuntimeRef& ref, const std::string& ns) const;

  // `runtime`, which is or was the runtime `ref`, packed. Shares the text of the cache, if that is the same.
  PackedJson Pack(const RuntimeRef& ref, const std::string& ns, const Json& runtime) const;

 private:
  void Put(const Json& object);
  const PackedJson* Known(const RuntimeRef& ref, const std::string& ns) const;  // null: it does not exist

  Events events_;
  std::map<std::string, PackedJson> runtimes_;  // by KeyOf
  std::vector<std::unique_ptr<Informer>> informers_;
  int unsynced_ = 2;
  bool begun_ = false;
};

// The Resource for the kind that `ref` names. Null: it is not a kind of runtime.
const Resource* RuntimeResource(const RuntimeRef& ref);

}  // namespace muster::controller
