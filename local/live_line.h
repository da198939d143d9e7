// SPDX-License-Identifier: Apache-2.0
// Keeps the status line of a run on a terminal up to date. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>

#include "launcher/console.h"
#include "local/output_watch.h"
#include "local/status_line.h"

namespace muster::local {

class LiveLine {
 public:
  // Draws nothing if stderr is not a terminal that can erase a line: TERM is not set, or is "dumb".
  LiveLine(boost::asio::io_context& loop, launcher::Console& console);

  // The lines of the run's output that it needs.
  WantedLines lines();
  // `facts` gives the state of the run. It is called at each Show(), and when the terminal's width changes.
  void Begin(std::function<StatusFacts(const StatusView& view)> facts);
  void Show();
  void End();  // erases the line; call it before the last output

 private:
  void AwaitResize();

  launcher::Console& console_;
  boost::asio::signal_set resized_;
  const bool live_;
  StatusView view_;
  std::function<StatusFacts(const StatusView& view)> facts_;  // empty: it has not begun, or has ended
};

}  // namespace muster::local
