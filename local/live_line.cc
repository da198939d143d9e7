#include "local/live_line.h"

#include <unistd.h>

#include <csignal>

#include "local/terminal.h"

namespace muster::local {

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
