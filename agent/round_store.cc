// SPDX-License-Identifier: Apache-2.0
#include "agent/round_store.h"

#include <fmt/format.h>

#include "agent/port_relay.h"

namespace muster::agent {
namespace {

// Descriptors that the store's clients leave free: for nodes that come, and for the port of --watch (32).
constexpr int kDescriptorsToMeet = 64;

}  // namespace

RoundStore::RoundStore(boost::asio::io_context& loop, const RunOptions& options, KeptDescriptors keep,
                       std::function<void(const store::StoreServer&)> goes)
    : loop_(loop), options_(options), keep_(std::move(keep)), goes_(std::move(goes)) {}

bool RoundStore::AtEndpoint() const {
  const RunOptions::Job& job = options_.job;
  return job.backend == Backend::kStatic && !job.standalone && job.node_rank == 0;
}

StatusOr<int> RoundStore::Renew(const RendezvousPlace& place, bool told) {
  if (server_ && AtEndpoint()) {
    server_->NewKeySpace();
    return server_->port();
  }
  if (server_ && !told && server_->counters().accepted == 0) return server_->port();
  if (server_) goes_(*server_);
  server_.reset();
  MUSTER_ASSIGN_OR_RETURN(server_, Open(place));
  return server_->port();
}

StatusOr<std::unique_ptr<store::StoreServer>> RoundStore::Open(const RendezvousPlace& place) const {
  store::StoreOptions serving;
  if (place.behind_store) {
    serving.foreign = [&loop = loop_, &place](boost::asio::ip::tcp::socket client, std::string first_bytes) {
      RelayToLocalPort(loop, std::move(client), std::move(first_bytes), place.service->port());
    };
  }
  serving.keep_descriptors = keep_;
  serving.keep_for_ports = kDescriptorsToMeet;
  const int port = AtEndpoint() ? options_.job.endpoint.port : 0;
  const std::string host = AtEndpoint() ? EndpointOpenTo(options_.job, place.address) : OpenTo(place.address);
  auto server = store::StoreServer::Listen(loop_, host, static_cast<uint16_t>(port), serving);
  if (server.ok()) return server;
  if (port == 0) return Annotate(server.status(), "cannot open a port for the store");
  const Status status =
      Annotate(server.status(), fmt::format("cannot serve port {} ({})", port, options_.job.port_origin));
  if (!absl::IsAlreadyExists(status)) return status;
  return WithRemedy(status, fmt::format("`muster status 127.0.0.1:{}` shows the job whose agent holds the port, if one "
                                        "does; a machine cannot run two nodes of rank 0",
                                        port));
}

}  // namespace muster::agent
