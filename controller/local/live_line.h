// The status line of a run on a terminal, kept up to date. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>

#include "controller/local/output_watch.h"
#include "controller/local/status_line.h"
#include "launcher/console.h"

namespace muster::controller {

class LiveLine {
 public:
  // Where stderr is no terminal that can erase a line (terminal.h), nothing is ever drawn.
  LiveLine(boost::asio::io_context& loop, launcher::Console& console);

  // What it wants of the run's output.
  WantedLines lines();
  // `facts`: where the run is now, asked for at each Show() and when the terminal gets another width.
  void Begin(std::function<StatusFacts(const StatusView& view)> facts);
  void Show();
  void End();  // erases it; before what is printed last

 private:
  void AwaitResize();

  launcher::Console& console_;
  boost::asio::signal_set resized_;
  const bool live_;
  StatusView view_;
  std::function<StatusFacts(const StatusView& view)> facts_;  // empty: it has not begun, or has ended
};

}  // namespace muster::controller
