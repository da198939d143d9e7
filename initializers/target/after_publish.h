// SPDX-License-Identifier: Apache-2.0
// `--then CMD`: a command of the user (a conversion, a split) that runs by `sh -c` once all files are in place.
//
// It runs after each publication, with MUSTER_TARGET in its environment and our stdin, stdout and stderr, and is killed
// when this process dies (base/guarded_process.h). Its exit code is the run's. TARGET/.muster/then exists until it has
// ended with 0: till then each start runs it again, even if no byte has to be moved.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace muster::initializers {

inline constexpr char kThenName[] = "then";  // in kOwnFolder: exists while the command is still due

class AfterPublish {
 public:
  // `ended` gets the exit code (128 + n for signal n), or a Status if the command could not be started; on the loop.
  AfterPublish(boost::asio::io_context& loop, std::string target, std::function<void(StatusOr<int>)> ended);
  ~AfterPublish();
  AfterPublish(const AfterPublish&) = delete;
  AfterPublish& operator=(const AfterPublish&) = delete;

  void Run(const std::string& command);  // once
  void Signal(int signal);               // sent to the command and to the processes that it has started

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::initializers
