// `--then CMD`: what the user wants done once everything is in place (a conversion, a split), by `sh -c`.
//
// Runs after each publication, with MUSTER_TARGET in its environment and our stdio, and does not outlive us
// (base/guarded_process.h). Its exit code is the run's. One that failed, or was killed with us, runs again at the next
// start, also if no byte has to be moved then: TARGET/.muster/then stands until it has ended with 0.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace muster::initializers {

inline constexpr char kThenName[] = "then";  // in kOwnFolder: is there while the command is still due

class AfterPublish {
 public:
  // `ended`: with its exit code, 128 + n for a signal; on the loop. A Status: it could not be started.
  AfterPublish(boost::asio::io_context& loop, std::string target, std::function<void(StatusOr<int>)> ended);
  ~AfterPublish();
  AfterPublish(const AfterPublish&) = delete;
  AfterPublish& operator=(const AfterPublish&) = delete;

  void Run(const std::string& command);  // once
  void Signal(int signal);               // to the command and what it has started

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::initializers
