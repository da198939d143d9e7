#include "agent/torch/peer_loss.h"

#include <algorithm>

#include "base/text.h"

namespace muster::agent {
namespace {

struct PeerLossText {
  std::string_view text;       // lower case
  bool needs_context = false;  // counts only on a line that names a communication library
};

// Messages of gloo, NCCL, the c10d store, JAX and XGBoost.
constexpr PeerLossText kTexts[] = {
    // NCCL (src/debug, ProcessGroupNCCL.cpp)
    {"remote process exited or there was a network error"},
    {"ncclremoteerror"},
    {"remote process exiting prematurely"},
    {"connection closed by remote peer"},
    {"watchdog caught collective operation timeout"},
    {"received a dump signal due to a collective timeout"},
    {"some nccl operations have failed or timed out"},
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
    // c10d store and sockets (TCPStore.cpp, socket.cpp)
    {"connection was likely closed. did the remote server shutdown or crash"},
    {"socket timeout", true},
    {"wait timeout after"},
    {"the client socket has timed out", true},
    {"the client socket has failed to connect", true},
    // JAX (jaxlib, distributed/client.h): the message of every other process when one process is gone
    {"terminating process because the jax distributed service detected fatal errors"},
    // XGBoost (src/collective: loop.cc, socket.h). Not "connection refused": XGBoost warns of that while it still tries
    {"encountered eof. the other end is likely closed"},
    {"system error:connection reset by peer"},
    {"system error:broken pipe"},
};

constexpr std::string_view kContexts[] = {"gloo",
                                          "nccl",
                                          "c10d",
                                          "tcpstore",
                                          "processgroup",
                                          "process_group",
                                          "process group",
                                          "socketimpl",
                                          "store->get",
                                          "distnetworkerror",
                                          "distbackenderror",
                                          "diststoreerror",
                                          "torch.distributed",
                                          "torch/distributed"};

bool LineTells(std::string_view line) {
  std::string lower = Lower(line);
  auto holds = [&](std::string_view part) { return lower.find(part) != std::string::npos; };
  bool context = std::any_of(std::begin(kContexts), std::end(kContexts), holds);
  return std::any_of(std::begin(kTexts), std::end(kTexts),
                     [&](const PeerLossText& row) { return (context || !row.needs_context) && holds(row.text); });
}

}  // namespace

bool LooksLikePeerLoss(std::string_view message, const std::vector<std::string>& stderr_tail) {
  std::vector<std::string_view> lines = Split(message, '\n');
  return std::any_of(lines.begin(), lines.end(), LineTells) ||
         std::any_of(stderr_tail.begin(), stderr_tail.end(), [](const std::string& line) { return LineTells(line); });
}

}  // namespace muster::agent
