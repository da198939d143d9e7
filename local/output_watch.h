// SPDX-License-Identifier: Apache-2.0
// Reports when each of several texts has come in the output of a run's containers, and gives each line with another
// text. The launcher copies such lines to files of one folder, which is watched by inotify. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace muster::local {

// `take` gets each line of a pod's output that contains `text`.
struct WantedLines {
  std::string text;
  std::function<void(const std::string& pod, const std::string& line)> take;  // empty: no lines are wanted
};

class OutputWatch {
 public:
  // Creates `folder` anew. `found` is called once for each of `texts`, when it first comes. Errors name the folder.
  static StatusOr<std::unique_ptr<OutputWatch>> Begin(boost::asio::io_context& loop, const std::string& folder,
                                                      std::vector<std::string> texts,
                                                      std::function<void(const std::string& text)> found,
                                                      WantedLines lines = {});
  ~OutputWatch();

  const std::vector<std::string>& texts() const;     // StreamSpec::filters
  std::string FileOf(const std::string& pod) const;  // StreamSpec::filter_file

 private:
  class Impl;
  explicit OutputWatch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::local
