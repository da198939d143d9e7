// SPDX-License-Identifier: Apache-2.0
// The variables by which an image's mpirun starts its daemons through `muster rsh` and knows the hosts: Open MPI 4
// (ORTE) and 5 (PRRTE), MPICH (Hydra) and Intel MPI. Pure. docs/mpi.md has the table for users.
//
// Sources: ompi_info --all of 4.1.4; PRRTE v3.0 (plm/ssh, util/proc_info.c, schizo/ompi); MPICH's Hydra (bsci_init.c,
// get_parameters.c, external_common_launch.c); Intel MPI's reference for Linux, Hydra; Kubeflow Trainer's variables of
// an MPI runtime.
#pragma once

#include <optional>
#include <string>

#include "agent/flags/flag_reader.h"
#include "agent/flags/pod_facts.h"
#include "base/status.h"

namespace muster::agent {

inline constexpr char kMpiHostFile[] = "/etc/mpi/hostfile";  // where Kubeflow mounts it, for the launcher only

// Where the hosts of the job come from; exactly one of `text` and `file` is set.
struct MpiHostSource {
  std::string text;    // the list itself
  std::string file;    // a file to read
  std::string origin;  // the variable, for messages; empty: `file` is kMpiHostFile by default and need not exist
};

// MUSTER_MPI_HOSTS (a list, or a file if it has a slash), else the first host file among the runtimes' own variables:
// OMPI_MCA_orte_default_hostfile, PRTE_MCA_prte_default_hostfile, HYDRA_HOST_FILE, I_MPI_HYDRA_HOST_FILE, else
// kMpiHostFile. nullopt: MUSTER_MPI_HOSTS=none, the command names its hosts itself.
std::optional<MpiHostSource> FindMpiHosts(const Environment& environment);

// The slots of a host that is named without a number: MUSTER_MPI_SLOTS, else OMPI_MCA_orte_set_default_slots,
// TRAINER_NPROC_PER_NODE or PET_NPROC_PER_NODE if it is a number (numProcPerNode of a TrainJob). InvalidArgument:
// MUSTER_MPI_SLOTS is not a number from 1 to 65,536.
StatusOr<std::optional<int>> MpiSlots(const Environment& environment);

// Checks the two settings above, as far as that is possible without reading a file.
Status CheckMpi(const Environment& environment);

// The facts of this pod that the runtimes need.
struct MpiPlace {
  std::string rsh;             // path of the muster-rsh link; empty: no remote shell is set
  std::string open_mpi_hosts;  // the two host files as written; empty: none (a worker pod)
  std::string hydra_hosts;
  std::optional<int> slots;     // MpiSlots
  std::optional<int> per_host;  // the slots that every host has; nullopt: they differ, or there are no files
  std::string interface;        // by which other pods reach this one ("eth0"); empty: unknown
  bool root = false;            // runs as root, which Open MPI refuses unless two variables allow it
};

// Variables for the launcher's command and, without host files, for commands in a worker pod, since beyond 64 hosts
// Open MPI's daemons start each other.
//
// - A variable that is set stays as it is. The exception: with MUSTER_MPI_HOSTS every host file variable is replaced.
// - If the image has chosen the remote shell of a runtime, that runtime gets only the host file. The image has chosen
//   if one of the runtime's own variables for it is set (also OMPI_MCA_plm, PRTE_MCA_plm other than rsh, ssh). PRRTE
//   reads ORTE's names, too, so ORTE's count for it.
// - orte_leave_session_attached: with no_tree_spawn a daemon otherwise leaves its remote shell, and nothing would end
//   it when the launcher dies. PRRTE has no such parameter, and daemonizes in the same case only.
// - HYDRA_LAUNCHER is rsh, not ssh: with ssh Hydra waits between two calls to one host, to spare sshd.
// - HYDRA_IFACE: without it Hydra's proxies call the launcher back by the pod's bare name, which no other pod can
//   resolve.
//
// InvalidArgument: `rsh` has a blank or a colon, which Open MPI takes for the end of a word.
StatusOr<Variables> MpiVariables(const Environment& environment, const MpiPlace& place);

}  // namespace muster::agent
