// core/v1 Events about an object. Loop thread only.
//
// An event that says again what an earlier one said of the same object (type, reason, message) raises that one's count;
// firstTimestamp and lastTimestamp are always filled (the SDK drops events without). What cannot be written is tried
// again a few times, then dropped: an event never holds up work. At most 25 writes an object, then one every 300 s:
// repetitions are counted meanwhile, what is new is dropped.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "controller/api/meta.h"
#include "controller/kube/api_client.h"

namespace muster::controller {

class EventRecorder {
 public:
  // `component`: who says it. `client` outlives it.
  EventRecorder(boost::asio::io_context& loop, ApiClient& client, std::string component);
  ~EventRecorder();  // what is under way is dropped
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;
  void Record(std::string_view api_version, std::string_view kind, const Meta& about, bool warning,
              std::string_view reason, std::string_view message, WallTime now);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::controller
