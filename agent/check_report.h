// What `muster check` measured, as its one JSON line, and the way back. Pure.
//
//   {"measured": {"memory": 12.4, "loopback": 3.1, ...}, "parts": [...], "beyond": [...]}
//
// "measured" is what other nodes' figures are compared with (rendezvous/outliers.h knows names and units); a check of
// the user's own may end with such a line too.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace muster::agent {

// "measured" of such a line: finite numbers >= 0 with names of at most 64 bytes, at most
// rendezvous::kMaxMeasured. Empty for everything else.
std::map<std::string, double> ReadMeasured(std::string_view line);

// ": memory 12.4 GB/s, disk 512 MB/s"; empty for none.
std::string DescribeMeasured(const std::map<std::string, double>& measured);

}  // namespace muster::agent
