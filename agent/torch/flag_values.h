// Readers of single values of torchrun's flags. Pure. Each InvalidArgument says what was wanted; the caller names the
// flag.
//
// Source: torch/distributed/run.py, elastic/multiprocessing/api.py (Std), elastic/rendezvous/utils.py.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/torch/run_options.h"
#include "base/clock.h"
#include "base/status.h"

namespace muster::agent {

inline constexpr int kC10dPort = 29400;  // where nodes meet unless told otherwise

// Python's int(): blanks around and one sign are allowed.
std::optional<int64_t> ParsePythonInt(std::string_view text);
// "1:4" or "2": 0 < min <= max.
StatusOr<std::pair<int, int>> ParseNodeRange(std::string_view text);
// "3" or "0:3,1:1".
StatusOr<StdStreams> ParseStdStreams(std::string_view text);
// 1,true,t,yes,y / 0,false,f,no,n.
StatusOr<bool> ParseBool(std::string_view text);
// Seconds ("30", "0.5") or a number with ms, s, m, h, d; several may follow each other: "1h30m".
StatusOr<Duration> ParseDuration(std::string_view text);
// Comma list; ",," is a comma in the text.
std::vector<std::string> ParseFilters(std::string_view text);
// "0,2,3"; empty: none.
StatusOr<std::vector<int>> ParseRankList(std::string_view text);
// "SIGTERM,SIGUSR1"; not KILL or STOP, which nobody can handle.
StatusOr<std::vector<int>> ParseSignalList(std::string_view text);

// "host", "host:port", "[v6]", "[v6]:port", "v6:port"; empty: localhost. `default_port` stands in for a missing port.
StatusOr<Endpoint> ParseEndpoint(std::string_view text, int default_port);

// What can be the name or the address of a host, blanks around it aside; empty is fine.
Status CheckHost(std::string_view text);

// Where to listen: numeric, "localhost", or "" and "::" for every address; what comes back is numeric or "".
StatusOr<std::string> ParseListenHost(std::string_view text);
// "HOST:PORT", ":PORT" or "HOST", a host as above, an IPv6 one with a port in brackets.
StatusOr<Endpoint> ParseListen(std::string_view text, int default_port);

// "PORT", "HOST:PORT" or "[V6]:PORT" of --http-port, `required`. Whether the host is numeric is said when it is bound.
StatusOr<HttpListen> ParseHttpListen(std::string_view text);
// What `given`, or nothing, means: off where it is "off", empty, or not given outside of Kubernetes.
StatusOr<HttpListen> ChooseHttpListen(const std::optional<std::string>& given, bool in_cluster);

// "k=v,k=v" of --rdzv-conf; a key given twice keeps the last value.
StatusOr<std::map<std::string, std::string>> ParseRdzvConf(std::string_view text);

}  // namespace muster::agent
