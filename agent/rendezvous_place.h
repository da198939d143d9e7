// SPDX-License-Identifier: Apache-2.0
// Where this node stands in the rendezvous: alone, on the endpoint's host, or one of the others.
//
//   one node   a coordinator in this process, no port, no gRPC
//   static     node rank 0 serves the endpoint; all others dial it. The endpoint is MASTER_PORT, where the store
//              listens; the store hands gRPC connections on to the coordinator (port_relay.h)
//   c10d       torchrun's is_host rule: the machine that the endpoint's host names serves it, if the port is free there
//              (torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py); the others dial it
// Pods of JAX and XGBoost use c10d, with is_host and the index set from their rank, and no store at the endpoint. Nodes
// that dial the endpoint serve a control port, so that one of them can stand in for a lost coordinator.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/workers/run_options.h"
#include "base/descriptors.h"
#include "base/status.h"
#include "net/credentials.h"
#include "net/resolver.h"
#include "rendezvous/coordinator.h"
#include "rendezvous/coordinator_service.h"

namespace muster::agent {

struct RendezvousPlace {
  std::string endpoint;         // what the attendant dials: "host:port"; empty: `coordinator` below
  std::string address;          // this node's numeric address, as its peers see it
  std::string control_address;  // where peers reach `coordinator`; empty when nothing is served
  bool behind_store = false;    // the coordinator listens on loopback only, behind the store's port
  std::unique_ptr<rendezvous::Coordinator> coordinator;
  std::unique_ptr<rendezvous::CoordinatorService> service;
  KeptDescriptors keep;  // for the services
  // Whether this node may later come to serve the endpoint that it dials now.
  enum class Endpoint {
    kElsewhere,
    kTaken,    // it names this machine, but another process had its port
    kUnknown,  // its name did not resolve: it may name this machine
  };
  Endpoint endpoint_is = Endpoint::kElsewhere;
  std::unique_ptr<net::Resolver> question;                           // kUnknown: resolves the name again
  std::unique_ptr<rendezvous::CoordinatorService> endpoint_service;  // after TakeEndpoint, beside `service`
};

// Decides and binds. Calls `done` once, on the loop. An error: this node must serve the endpoint (static rank 0,
// is_host=1) or open a control port, and cannot. A host name that does not resolve yet is not an error. `keep`:
// descriptors that connections to the node's ports leave free.
void FindRendezvousPlace(boost::asio::io_context& loop, const RunOptions::Job& job, const net::Credentials& credentials,
                         const std::string& node_name, KeptDescriptors keep,
                         std::function<void(StatusOr<RendezvousPlace>)> done);

// Call it when the endpoint refuses connections. Serves it by place->coordinator, if it is this machine's (kTaken) and
// its port is free. False: it is not, or that is not known yet (kUnknown); then its name is resolved again, for a later
// call. `job` and `place` must outlive place->question.
bool TakeEndpoint(boost::asio::io_context& loop, const RunOptions::Job& job, const net::Credentials& credentials,
                  RendezvousPlace* place);

// Where a node with `address` listens: a loopback address itself, else "" (all addresses; peers may know others of it).
std::string OpenTo(const std::string& address);
// Where such a node serves the endpoint, for others to dial: the endpoint's host if that is loopback, else OpenTo().
std::string EndpointOpenTo(const RunOptions::Job& job, const std::string& address);

// Logs it if anybody may speak to the rendezvous that is served at `host` (numeric; "": every address) and `port`, that
// is without token and TLS. `remedy` names the flags that protect it. Logs nothing on loopback.
void SayIfOpen(const net::Credentials& credentials, const std::string& host, int port, std::string_view remedy);

}  // namespace muster::agent
