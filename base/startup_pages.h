// SPDX-License-Identifier: Apache-2.0
// Reduces the memory of a process that starts quickly and then runs for weeks.
#pragma once

namespace muster {

// Unmaps the pages of code and constants that this process has touched, so that they no longer count as its memory
// (RSS). The kernel maps sixteen pages for each touched one, and most of them hold code that only the start runs. A
// page that is touched again is mapped again from the page cache; that takes some microseconds for all of them. Best
// effort. Any thread may call it.
void DropStartupPages();

}  // namespace muster
