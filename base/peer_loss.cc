// SPDX-License-Identifier: Apache-2.0
#include "base/peer_loss.h"

#include <algorithm>

#include "base/reason_line.h"
#include "base/text.h"

namespace muster {
namespace {

struct PeerLossText {
  std::string_view text;       // lower case
  bool needs_context = false;  // counts only on a line that names a communication library
};

// Messages of gloo, NCCL, the c10d store, UCX, MPI, Horovod, TensorFlow, JAX and XGBoost.
constexpr PeerLossText kTexts[] = {
    // NCCL (src/debug, ProcessGroupNCCL.cpp)
    {"remote process exited or there was a network error"},
    {"ncclremoteerror"},
    {"remote process exiting prematurely"},
    {"connection closed by remote peer"},
    {"closed by remote peer", true},
    {"watchdog caught collective operation timeout"},
    {"received a dump signal due to a collective timeout"},
    {"due to collective timeout or exception"},
    {"some nccl operations have failed or timed out"},
    {"with status=12 opcode", true},  // InfiniBand's IBV_WC_RETRY_EXC_ERR: the peer does not acknowledge
    {"with error 12, opcode", true},
    {"ibv_wc_retry_exc_err"},
    {"nccl communicator was aborted"},
    // gloo (transport/tcp/pair.cc, unbound_buffer.cc)
    {"connection closed by peer", true},
    {"connection reset by peer", true},
    {"broken pipe", true},
    {"connection refused", true},
    {"no route to host", true},
    {"timed out waiting", true},
    {"application timeout caused pair closure"},
    {"gloo connectfullmesh failed"},
    {"failed to pass monitoredbarrier"},
    {"received errors while waiting for send/recv from rank"},
    // c10d store and sockets (TCPStore.cpp, socket.cpp)
    {"connection was likely closed. did the remote server shutdown or crash"},
    {"socket timeout", true},
    {"wait timeout after"},
    {"waiting for clients.", true},
    {"in store based barrier on rank"},
    {"the client socket has timed out", true},
    {"the client socket has failed to connect", true},
    {"tcpstore server has shut down too early"},
    // UCX (ucs/type/status.c), which UCC and Open MPI use
    {"connection reset by remote peer"},
    // Open MPI (btl/tcp, errmgr; ULFM), PRRTE, MPICH and Intel MPI (src/mpid)
    {"rte has lost communication with"},
    {"mpi_err_proc_failed"},
    {"communication error with rank", true},
    {"a process has failed, error stack"},
    // Horovod; TensorFlow's collective operations, by gRPC
    {"horovod has been shut down"},
    {"failed to connect to all addresses", true},
    {"socket closed", true},
    // JAX (jaxlib, distributed/client.h): the message of every other process when one process is gone
    {"terminating process because the jax distributed service detected fatal errors"},
    {"deadline_exceeded: barrier timed out"},
    // XGBoost (src/collective: loop.cc, socket.h). Not "connection refused": XGBoost warns of that while it still tries
    {"encountered eof. the other end is likely closed"},
    {"system error:connection reset by peer"},
    {"system error:broken pipe"},
};

constexpr std::string_view kContexts[] = {
    "gloo",          "nccl",       "c10d",       "tcpstore",          "processgroup",      "process_group",
    "process group", "socketimpl", "store->get", "distnetworkerror",  "distbackenderror",  "diststoreerror",
    "mca_btl_tcp",   "mpid_",      "mpidi",      "torch.distributed", "torch/distributed", "collective ops is aborted",
    "xgboost.core."};

// `line`: in lower case.
bool NamesALibrary(std::string_view line) {
  return std::any_of(std::begin(kContexts), std::end(kContexts),
                     [&](std::string_view name) { return line.find(name) != std::string_view::npos; });
}

}  // namespace

bool ReportsLostPeer(std::string_view line) {
  const std::string lower = Lower(line);
  const bool context = NamesALibrary(lower);
  return std::any_of(std::begin(kTexts), std::end(kTexts), [&](const PeerLossText& row) {
    return (context || !row.needs_context) && lower.find(row.text) != std::string::npos;
  });
}

bool LooksLikePeerLoss(const WorkerFailure& failure) {
  const std::string own = OwnLine(failure);
  if (ReportsLostPeer(own)) return true;
  if (IsError(own) && !NamesALibrary(Lower(own))) return false;
  const std::vector<std::string_view> lines = Split(failure.message, '\n');
  const std::vector<std::string>& tail = failure.stderr_tail;
  return std::any_of(lines.begin(), lines.end(), ReportsLostPeer) ||
         std::any_of(tail.begin(), tail.end(), ReportsLostPeer);
}

}  // namespace muster
