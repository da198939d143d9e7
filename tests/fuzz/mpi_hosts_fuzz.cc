// libFuzzer: host files of MPI runtimes; the first byte is the default number of slots.
#include <cstdlib>

#include "agent/mpi_hosts.h"

namespace {

void Must(bool holds) {
  if (!holds) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  using muster::agent::ParseMpiHosts;
  auto hosts = ParseMpiHosts({reinterpret_cast<const char*>(data + 1), size - 1}, 1 + data[0]);
  if (!hosts.ok()) return 0;
  auto from_open_mpi = ParseMpiHosts(muster::agent::OpenMpiHostFile(*hosts));
  auto from_hydra = ParseMpiHosts(muster::agent::HydraHostFile(*hosts));
  Must(from_open_mpi.ok() && *from_open_mpi == *hosts);
  Must(from_hydra.ok() && *from_hydra == *hosts);
  return 0;
}
