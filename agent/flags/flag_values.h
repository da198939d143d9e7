// SPDX-License-Identifier: Apache-2.0
// Readers of single values of torchrun's flags. Pure. InvalidArgument says what was wanted; the caller names the flag.
//
// Source: torch/distributed/run.py, elastic/multiprocessing/api.py (Std), elastic/rendezvous/utils.py.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/workers/run_options.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/status.h"

namespace muster::agent {

inline constexpr int kC10dPort = 29400;  // where nodes meet by default

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
// "SIGTERM,SIGUSR1"; not SIGKILL, SIGSTOP or SIGCHLD.
StatusOr<std::vector<int>> ParseSignalList(std::string_view text);

// "host", "host:port", "[v6]", "[v6]:port", "v6:port"; empty: localhost. `default_port` stands in for a missing port.
StatusOr<Endpoint> ParseEndpoint(std::string_view text, int default_port);

// OK if `text` can be the name or the address of a host, without the blanks around it; or if it is empty.
Status CheckHost(std::string_view text);

// Where to listen: a numeric address, "localhost", or "" and "::" for every address. The result is numeric or "".
StatusOr<std::string> ParseListenHost(std::string_view text);
// "HOST:PORT", ":PORT" or "HOST"; the host as above, an IPv6 address with a port in brackets.
StatusOr<Endpoint> ParseListen(std::string_view text, int default_port);

// "PORT", "HOST:PORT" or "[V6]:PORT" of --http-port, `required`. A host that is not numeric fails when the port opens.
StatusOr<HttpListen> ParseHttpListen(std::string_view text);
// Whether this process is in a pod of Kubernetes.
bool InCluster(const Environment& environment);
// What --http-port means: off if it is "off" or empty, or if it is not given outside of Kubernetes.
StatusOr<HttpListen> ChooseHttpListen(const std::optional<std::string>& given, bool in_cluster);

// "k=v,k=v" of --rdzv-conf; a key given twice keeps the last value.
StatusOr<std::map<std::string, std::string>> ParseRdzvConf(std::string_view text);

}  // namespace muster::agent
