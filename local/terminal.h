// The terminal that a status line is drawn on.
#pragma once

#include "base/environment.h"

namespace muster::local {

// Whether `fd` is a terminal that can erase a line: TERM is set and is not "dumb". NO_COLOR has no effect, since the
// line has no colour.
bool IsLiveTerminal(int fd, const Environment& environment);
int TerminalWidth(int fd);  // in columns; 80 if it is not known

}  // namespace muster::local
