// SPDX-License-Identifier: Apache-2.0
// Reads what `muster check --json` measured from the one JSON line that it prints. Pure.
//
//   {"measured": {"memory": 12.4, "loopback": 3.1, ...}, "parts": [...], "beyond": [...]}
//
// "measured" holds the figures that are compared with those of other nodes (rendezvous/outliers.h has names and units).
// A user's own node check may end with such a line, too.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace muster::agent {

// The figures of "measured" in such a line: finite numbers >= 0 with names of at most 64 bytes, at most
// rendezvous::kMaxMeasured of them. Empty if `line` is anything else.
std::map<std::string, double> ReadMeasured(std::string_view line);

// ": memory 12.4 GB/s, disk 512 MB/s"; empty for none.
std::string DescribeMeasured(const std::map<std::string, double>& measured);

}  // namespace muster::agent
