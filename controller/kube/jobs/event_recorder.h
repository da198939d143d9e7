// SPDX-License-Identifier: Apache-2.0
// Writes core/v1 Events about an object. Loop thread only.
//
// An event that repeats an earlier one of the object (type, reason, message) raises its count. firstTimestamp and
// lastTimestamp are always set: Kubeflow's SDK drops events without them. A failed write is retried a few times, then
// dropped: an event never holds up work. The limit is 25 writes per object, then one every 300 s; beyond it,
// repetitions are counted and new events are dropped.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "controller/api/meta.h"
#include "controller/kube/client/api_client.h"

namespace muster::controller {

class EventRecorder {
 public:
  // `component`: the source of the events. `client` must outlive this object.
  EventRecorder(boost::asio::io_context& loop, ApiClient& client, std::string component);
  ~EventRecorder();  // drops writes that are under way
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;
  void Record(std::string_view api_version, std::string_view kind, const Meta& about, bool warning,
              std::string_view reason, std::string_view message, WallTime now);
  // The object is gone: its counts are dropped, and its writes are not tried again.
  void Forget(std::string_view api_version, std::string_view kind, const Meta& about);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::controller
