// SPDX-License-Identifier: Apache-2.0
// A program whose output `muster top` needs: kubectl, `muster stacks`. It does not outlive this process, nor do its
// children (base/guarded_process.h). Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace muster::agent {

class TopTool {
 public:
  struct Events {
    std::function<void(std::string_view)> out;  // a piece of its stdout; it may not destroy the TopTool
    // The last call, with its exit code and the last lines of its stderr, quoted. It may destroy the TopTool.
    std::function<void(int code, const std::string& complaints)> ended;
  };
  // `limit`: after it the program is killed, and its code is 137. Stdin is empty. No event comes within this call.
  // Errors name the program: it cannot be executed.
  static StatusOr<std::unique_ptr<TopTool>> Start(boost::asio::io_context& loop, std::vector<std::string> words,
                                                  std::optional<Duration> limit, Events events);
  ~TopTool();  // kills the program; no event comes after it

 private:
  class Impl;
  explicit TopTool(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent
