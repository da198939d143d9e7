// SPDX-License-Identifier: Apache-2.0
#include "local/live_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>

#include "base/environment.h"

namespace muster::local {
namespace {

// Whether `fd` is a terminal that can erase a line. NO_COLOR has no effect, since the line has no colour.
bool IsLiveTerminal(int fd, const Environment& environment) {
  const auto kind = environment.NonBlank("TERM");
  return kind && *kind != "dumb" && isatty(fd) == 1;
}

int TerminalWidth(int fd) {  // in columns; 80 if it is not known
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

LiveLine::LiveLine(boost::asio::io_context& loop, launcher::Console& console)
    : console_(console), resized_(loop), live_(IsLiveTerminal(STDERR_FILENO, Environment::OfProcess())) {}

WantedLines LiveLine::lines() {
  if (!live_) return {};
  return {.text = std::string(kOwnLines), .take = [this](const std::string& pod, const std::string& line) {
            view_.Take(pod, line);
            Show();
          }};
}

void LiveLine::Begin(std::function<StatusFacts(const StatusView& view)> facts) {
  if (!live_) return;
  facts_ = std::move(facts);
  boost::system::error_code ignored;
  resized_.add(SIGWINCH, ignored);
  AwaitResize();
  Show();
}

void LiveLine::Show() {
  if (facts_) console_.SetFooter(StatusLine(facts_(view_), TerminalWidth(STDERR_FILENO)));
}

void LiveLine::End() {
  facts_ = nullptr;
  resized_.cancel();
  console_.SetFooter("");
}

void LiveLine::AwaitResize() {
  resized_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    Show();
    AwaitResize();
  });
}

}  // namespace muster::local
