// SPDX-License-Identifier: Apache-2.0
// Follows all objects of one kind: lists them page by page, then watches them. Loop thread only.
//
// It keeps only names and resource versions. After a broken connection the watch goes on from the last resourceVersion,
// which bookmarks keep recent. After 410 or an ERROR event everything is listed again, and objects that have vanished
// are reported as gone. An object that was deleted and created again between two lists is reported as changed, with
// another uid. Failures are retried for ever, with pauses of up to 30 s. `say` gets the first one, and its end.
//
// Callbacks may do anything, also destroy the informer.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "controller/kube/client/api_client.h"
#include "controller/kube/client/informer_state.h"

namespace muster::controller {

class Informer {
 public:
  struct Events {
    // New or changed. JSON (json() is not null), with apiVersion and kind, unless the kind can come in protobuf.
    std::function<void(const ObjectView& object)> put;
    std::function<void(const GoneObject&)> gone;
    std::function<void()> synced;  // called once, when the first list is complete
    std::function<void(const std::string& text)> say;
  };
  // `ns`: empty: all namespaces. `selector`, `fields`: of labels and fields, in kubectl's syntax; empty: all. `client`
  // must outlive the informer.
  Informer(boost::asio::io_context& loop, ApiClient& client, Resource resource, std::string ns,
           const std::string& selector, Events events, const std::string& fields = "");
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;
  void Begin();
  bool synced() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::controller
