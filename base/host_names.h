// What this machine is called and where it can be reached, without NSS: the binary is static and runs in any image.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/host_fs.h"
#include "base/status.h"

namespace muster {

// gethostname(2).
std::string HostName();

// The first name with a dot among those that /etc/hosts gives `host_name`, else `host_name`: socket.getfqdn() without
// DNS.
std::string FullHostName(const std::string& host_name, const HostFs& fs = HostFs());

// Addresses of this machine's interfaces that are up, loopback left out, as numeric text; a link-local IPv6 address is
// left out too. In the order of the interfaces, IPv4 before IPv6.
std::vector<std::string> LocalAddresses();

struct MachineNames {
  std::string host_name;
  std::string full_name;
  std::vector<std::string> addresses;  // numeric
};
MachineNames ThisMachine();

// torchrun's guess whether this machine should serve the endpoint (elastic/rendezvous/utils.py,
// _matches_machine_hostname): "localhost", a loopback address, this machine's name or one of its addresses. Beyond
// torchrun, `resolved`: the addresses the host's name stands for, where the caller knows them (an alias such as a
// headless Service of this pod). Pure.
bool MeansThisMachine(std::string_view host, const MachineNames& machine,
                      const std::vector<std::string>& resolved = {});

// Why machines that wait for each other at `host` may each wait at another place, and what to do: one clause. Empty:
// nothing speaks for that. `machine` may be empty. Pure.
std::string EndpointHint(std::string_view host, const MachineNames& machine);

// Why nothing can be listened to at `host` (numeric; empty: every address) and `port`, by errno, with what to do.
// AlreadyExists: the port is taken.
Status ListenStatus(int error, std::string_view host, int port);

// "host:port", an IPv6 address in brackets.
std::string JoinHostPort(std::string_view host, int port);

}  // namespace muster
