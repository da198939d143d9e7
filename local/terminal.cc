#include "local/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace muster::local {

bool IsLiveTerminal(int fd, const Environment& environment) {
  const auto kind = environment.NonBlank("TERM");
  return kind && *kind != "dumb" && isatty(fd) == 1;
}

int TerminalWidth(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace muster::local
