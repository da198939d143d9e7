// The terminal that a status line is drawn on.
#pragma once

#include "base/environment.h"

namespace muster::controller {

// `fd` is a terminal that can erase a line: TERM is set, and not to "dumb". NO_COLOR changes nothing, since the line
// has no colour.
bool IsLiveTerminal(int fd, const Environment& environment);
int TerminalWidth(int fd);  // in columns; 80 where it is not known

}  // namespace muster::controller
