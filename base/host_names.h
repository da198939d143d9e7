// SPDX-License-Identifier: Apache-2.0
// Names and addresses of this machine. They are found without NSS, since the binary is static and runs in any image.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/host_fs.h"
#include "base/status.h"

namespace muster {

// gethostname(2).
std::string HostName();

// `host_name` if it has a dot. Else the first name with a dot on a line of /etc/hosts that lists `host_name`; else
// `host_name`. Like Python's socket.getfqdn(), without DNS.
std::string FullHostName(const std::string& host_name, const HostFs& fs = HostFs());

// Numeric addresses of this machine's interfaces that are up, without loopback and without link-local IPv6. In the
// order of the interfaces, IPv4 before IPv6.
std::vector<std::string> LocalAddresses();

struct MachineNames {
  std::string host_name;
  std::string full_name;
  std::vector<std::string> addresses;  // numeric
};
MachineNames ThisMachine();

// Whether `host`, the host of the rendezvous endpoint, is this machine: "localhost", a loopback address, this machine's
// name or one of its addresses. Source: torchrun's _matches_machine_hostname (elastic/rendezvous/utils.py). Beyond
// torchrun, `resolved` may hold the addresses of `host`, for an alias such as a headless Service of this pod. Pure.
bool MeansThisMachine(std::string_view host, const MachineNames& machine,
                      const std::vector<std::string>& resolved = {});

// "localhost" or a loopback address. Pure.
bool IsLoopbackHost(std::string_view host);

// One clause that says why each machine may take the endpoint `host` for itself, and what to do. Empty if `host` is
// neither a loopback name or address nor this machine's name. `machine` may be empty. Pure.
std::string EndpointHint(std::string_view host, const MachineNames& machine);

// The status for a failed listen at `host` (numeric; empty: every address) and `port` with errno `error`, with what to
// do. AlreadyExists: the port is taken.
Status ListenStatus(int error, std::string_view host, int port);

// "host:port"; an IPv6 address is put in brackets.
std::string JoinHostPort(std::string_view host, int port);

}  // namespace muster
