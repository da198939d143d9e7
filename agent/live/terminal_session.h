// SPDX-License-Identifier: Apache-2.0
// Takes the terminal on stdin and stdout over for a full screen, and gives it back as it was: at the end, at each
// signal that ends the process (also at a crash, but not at SIGKILL), and while the process is suspended. Loop thread
// only; one at a time.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/live/terminal_frame.h"
#include "base/environment.h"
#include "base/status.h"

namespace muster::agent {

// Whether stdin and stdout are a terminal that can move its cursor: TERM is set, and is not "dumb".
bool IsFullTerminal(const Environment& environment);
// NO_COLOR is not set (no-color.org); no UTF-8 in the locale that is set.
Screen::Options ScreenOptionsFor(const Environment& environment);

class TerminalSession {
 public:
  struct Events {
    std::function<void(std::string_view bytes)> typed;
    std::function<void()> written;  // all of the last Write()
    // The terminal may show anything, or has another size: draw all of it.
    std::function<void()> lost_picture;
    std::function<void(int signal)>
        ends;  // SIGTERM, SIGINT, SIGQUIT or SIGHUP has come, or the terminal is gone (SIGHUP)
  };

  static StatusOr<std::unique_ptr<TerminalSession>> Begin(boost::asio::io_context& loop, Events events);
  ~TerminalSession();

  Size size() const;
  // The terminal is not ours: the process is about to be stopped. `lost_picture` comes when it is ours again.
  bool away() const;
  // Only if the last one has been written, and not while away(). May call `written` from within.
  void Write(std::string bytes);
  // Asks this process and its group to stop, as Ctrl-Z does.
  void Suspend();

 private:
  class Impl;
  explicit TerminalSession(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent
