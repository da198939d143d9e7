// Watches the Events that say why a pod does not run, or why it ended. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/kube/client/api_client.h"
#include "controller/kube/client/informer.h"
#include "controller/reconcile/observed.h"

namespace muster::controller {

class PodEvents {
 public:
  // Without the right to read Events, `put` is never called. `ns`: empty: all namespaces. `client` must outlive it.
  PodEvents(boost::asio::io_context& loop, ApiClient& client, std::string ns,
            std::function<void(ObservedPodEvent)> put);

  void Begin();  // once the pods are listed: `put` is called once for each Event, whether its pod is known or not

 private:
  const std::function<void(ObservedPodEvent)> put_;
  std::vector<std::unique_ptr<Informer>> informers_;
};

}  // namespace muster::controller
