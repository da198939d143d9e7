// Where this node stands in the rendezvous: alone, on the endpoint's host, or one of the others.
//
//   one node   a coordinator in this process, no port, no gRPC
//   static     node rank 0 serves the endpoint; all others dial it. The endpoint is MASTER_PORT, where the store
//              listens: it hands what speaks gRPC to the coordinator (relay.h)
//   c10d       torchrun's is_host rule: whoever the endpoint's host names serves it, if the port is free there
//              (torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py); the rest dial it
// Pods of JAX and XGBoost are c10d's with is_host and an index by their rank: the endpoint is the coordinator's own.
// A node of several also serves a control port of its own, so that it can stand in for a lost coordinator.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/torch/run_options.h"
#include "base/status.h"
#include "net/credentials.h"
#include "net/resolver.h"
#include "rendezvous/conductor.h"
#include "rendezvous/coordinator.h"

namespace muster::agent {

struct RendezvousPlace {
  std::string endpoint;         // for the attendant: "host:port", or empty: the conductor below
  std::string address;          // this node's numeric address, as its peers see it
  std::string control_address;  // where peers reach `coordinator`; empty when nothing is served
  bool behind_store = false;    // the coordinator listens on loopback only, behind the store's port
  std::unique_ptr<rendezvous::Conductor> conductor;
  std::unique_ptr<rendezvous::Coordinator> coordinator;
  // Whether the endpoint, which this node dials, may come to be served here.
  enum class Endpoint {
    kElsewhere,
    kTaken,    // it names this machine, but somebody else had its port
    kUnknown,  // its name did not resolve: it may be this machine's
  };
  Endpoint endpoint_is = Endpoint::kElsewhere;
  std::unique_ptr<net::Resolver> question;                        // kUnknown: the name is being asked for again
  std::unique_ptr<rendezvous::Coordinator> endpoint_coordinator;  // after TakeEndpoint, beside `coordinator`
};

// Decides and binds. An error: the endpoint must be served here (static rank 0, is_host=1) and cannot be, or
// credentials are needed and missing. Calls back once, on the loop; a host name that does not resolve yet is no error.
void FindRendezvousPlace(boost::asio::io_context& loop, const RunOptions& options, const net::Credentials& credentials,
                         const std::string& node_name, std::function<void(StatusOr<RendezvousPlace>)> done);

// The endpoint refuses. Serves it by place->conductor, where it is this machine's (kTaken) and its port is free. False:
// it is not, or it is not known yet; then its name is asked for again, and a later call has the answer. `options` and
// `place` must outlive the question.
bool TakeEndpoint(boost::asio::io_context& loop, const RunOptions& options, const net::Credentials& credentials,
                  RendezvousPlace* place);

// Where a node with that address listens: at a loopback address alone, else at every one (""), since its peers may know
// it by others too.
std::string OpenTo(const std::string& address);
// Where the node with that address serves the endpoint: where others dial it.
std::string EndpointOpenTo(const RunOptions& options, const std::string& address);

// Says so where anybody may speak to the rendezvous served at `host` (numeric; "": every address) and `port`; `remedy`
// names the flags against it. Nothing on loopback.
void SayIfOpen(const net::Credentials& credentials, const std::string& host, int port, std::string_view remedy);

}  // namespace muster::agent
