// SPDX-License-Identifier: Apache-2.0
// The hosts of an MPI job: reads and writes the host files of Open MPI and of Hydra (MPICH, Intel MPI). Pure.
//
// Each runtime refuses the other's file: Hydra ends at "token slots not supported", and Open MPI takes "host:4" for a
// name without slots (both seen with 4.1.4 and 4.0.2). So a list in either form is written in both.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::agent {

struct MpiHost {
  std::string name;  // a name or a numeric address, without brackets
  int slots = 1;
  bool operator==(const MpiHost&) const = default;
};

inline constexpr int kMostMpiHosts = 100'000;
inline constexpr int kMostMpiSlots = 65'536;
inline constexpr size_t kMostMpiHostText = size_t{32} << 20;

// One host per line, or several with commas between. Either dialect, also mixed:
//
//   host slots=2 max_slots=4    Open MPI. cpu and count are other words for slots; max_slots=4 alone means 4 slots
//   host:2   [fd00::1]:2        Hydra
//   host   fd00::1              slots as below
//   user@host                   the user is dropped, and so are user=, port= and binding=: no other runtime knows them,
//                               and the remote command runs as the pod's user
//   # comment                   to the end of the line
//
// A host that is named several times has the sum of its slots, at its first place. Without any number of slots it has
// `default_slots` if it is named once, else one for each time (a PBS node file).
//
// InvalidArgument names the line, the text and the remedy: a name that no host can have (also one that begins with a
// dash: a remote shell would take it for an option), an unknown word, slots beyond 1..65,536, more slots than
// max_slots, more than 100,000 hosts, an entry longer than 1,024 bytes, a text without any host.
StatusOr<std::vector<MpiHost>> ParseMpiHosts(std::string_view text, int default_slots = 1);

// "host slots=2\n" for each. An IPv6 address has no brackets, since Open MPI refuses them.
std::string OpenMpiHostFile(const std::vector<MpiHost>& hosts);
// "host:2\n" for each. MPICH cuts an IPv6 address at its first colon, with or without brackets; use names instead.
std::string HydraHostFile(const std::vector<MpiHost>& hosts);

// The number of slots that every host has; nullopt: they differ.
std::optional<int> CommonSlots(const std::vector<MpiHost>& hosts);

}  // namespace muster::agent
