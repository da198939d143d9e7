// SPDX-License-Identifier: Apache-2.0
// Reads the hosts of an MPI job and writes them into a private folder (0700, by mkdtemp; removed with the object), as
// host files for Open MPI and Hydra. The folder gets a link `muster-rsh` if the installation has none.
//
// Blocking file calls; passive; used from one thread. Movable.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/flags/flag_reader.h"
#include "agent/flags/mpi_hosts.h"
#include "agent/flags/wire_mpi.h"
#include "base/status.h"

namespace muster::agent {

class MpiHostFiles {
 public:
  // Reads FindMpiHosts(environment). Makes the folder in TMPDIR, /tmp or /var/tmp, in `other_folder` (the log folder;
  // may be empty) or in /dev/shm: the first that takes it.
  //
  // FailedPrecondition or InvalidArgument name variable and file: the host file is missing, unreadable, a folder or has
  // no host (mpi_hosts.h); no folder can be written; no setting names hosts and there is no /etc/mpi/hostfile (no error
  // if PET_NNODES or TRAINER_NNODES is 1: place() has no host files then).
  static StatusOr<MpiHostFiles> Make(const Environment& environment, const std::string& other_folder);

  MpiHostFiles(MpiHostFiles&& other) noexcept;
  MpiHostFiles& operator=(MpiHostFiles&& other) noexcept;
  ~MpiHostFiles();

  const MpiPlace& place() const { return place_; }
  const std::vector<MpiHost>& hosts() const { return hosts_; }
  // A free name in the folder, for the pipe of the remote shells (mpi_launcher.h).
  std::string reports() const;

 private:
  MpiHostFiles() = default;
  Status Lay();  // into folder_
  void Remove();

  std::string folder_;  // empty: none
  std::vector<MpiHost> hosts_;
  MpiPlace place_;
};

// The place of a worker pod: without host files.
MpiPlace MpiWorkerPlace();

// The first interface that is up, no loopback and has an IPv4 address, all that Hydra knows; empty: none.
std::string MpiInterface();

}  // namespace muster::agent
