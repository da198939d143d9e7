// The hosts of an MPI job, read from where they are told and laid into a private folder in both dialects, with a link
// `muster-rsh` beside them where the installation has none. The folder (0700, by mkdtemp) is removed with the object.
//
// Blocking file calls; passive; used from one thread. Movable.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/torch/flag_reader.h"
#include "agent/torch/mpi_hosts.h"
#include "agent/torch/wire_mpi.h"
#include "base/status.h"

namespace muster::agent {

class MpiHostFiles {
 public:
  // Reads FindMpiHosts(environment). The folder is made in TMPDIR, /tmp or /var/tmp, in `other_folder` (the log folder;
  // may be empty), or in /dev/shm: the first that takes it.
  //
  // FailedPrecondition or InvalidArgument, naming the variable and the file: it does not exist, cannot be read, is a
  // folder, has no host (mpi_hosts.h), no folder can be written; nobody told any hosts and there is no
  // /etc/mpi/hostfile, unless the job has one node (PET_NNODES, TRAINER_NNODES): place() has no host files then.
  static StatusOr<MpiHostFiles> Make(const Environment& environment, const std::string& other_folder);

  MpiHostFiles(MpiHostFiles&& other) noexcept;
  MpiHostFiles& operator=(MpiHostFiles&& other) noexcept;
  ~MpiHostFiles();

  const MpiPlace& place() const { return place_; }
  const std::vector<MpiHost>& hosts() const { return hosts_; }
  // A name in the folder that nothing has yet, for the pipe of the remote shells (mpi_launcher.h).
  std::string reports() const;

 private:
  MpiHostFiles() = default;
  Status Lay();  // into folder_
  void Remove();

  std::string folder_;  // empty: none
  std::vector<MpiHost> hosts_;
  MpiPlace place_;
};

// A worker pod's place: no host files.
MpiPlace MpiWorkerPlace();

// The first interface that is up, is no loopback and has an IPv4 address, which is all Hydra knows; empty: none.
std::string MpiInterface();

}  // namespace muster::agent
