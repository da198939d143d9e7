// SPDX-License-Identifier: Apache-2.0
// libFuzzer: host files of MPI runtimes; the first byte is the default number of slots.
#include "agent/flags/mpi_hosts.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using muster::agent::ParseMpiHosts;
  const auto [choice, text] = Choose(data, size);
  auto hosts = ParseMpiHosts(text, 1 + choice);
  if (!hosts.ok()) return 0;
  auto from_open_mpi = ParseMpiHosts(muster::agent::OpenMpiHostFile(*hosts));
  auto from_hydra = ParseMpiHosts(muster::agent::HydraHostFile(*hosts));
  Must(from_open_mpi.ok() && *from_open_mpi == *hosts);
  Must(from_hydra.ok() && *from_hydra == *hosts);
  return 0;
}
