// SPDX-License-Identifier: Apache-2.0
#include "agent/rendezvous_place.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/post.hpp>

#include "base/host_names.h"
#include "base/log.h"
#include "base/text.h"

namespace muster::agent {
namespace {

namespace ip = boost::asio::ip;

// How long to find out whether the endpoint is this machine. The attendant resolves the name again by itself.
constexpr auto kResolveLimit = std::chrono::seconds(5);

// The address from which this machine would send to `peer`, by the kernel's routes. No packet is sent.
std::string AddressTowards(boost::asio::io_context& loop, const ip::address& peer) {
  boost::system::error_code error;
  ip::udp::socket socket(loop);
  socket.open(peer.is_v6() ? ip::udp::v6() : ip::udp::v4(), error);
  if (!error) socket.connect({peer, 9}, error);
  if (error) return {};
  ip::address own = socket.local_endpoint(error).address();
  return error ? std::string() : own.to_string();
}

std::string OwnAddress(boost::asio::io_context& loop, const RunOptions::Job& job,
                       const std::vector<ip::address>& resolved) {
  if (!job.local_addr.empty()) return job.local_addr;
  if (IsLoopbackHost(job.endpoint.host)) return OpenTo(job.endpoint.host);
  for (const ip::address& peer : resolved) {
    if (peer.is_loopback()) continue;  // a name of this machine in its own hosts file
    if (std::string own = AddressTowards(loop, peer); !own.empty()) return own;
  }
  std::vector<std::string> addresses = LocalAddresses();
  return addresses.empty() ? "127.0.0.1" : addresses.front();
}

rendezvous::CoordinatorService::Options Serving(const net::Credentials& credentials, const std::string& address,
                                                const KeptDescriptors& keep) {
  return {.host = OpenTo(address), .credentials = credentials, .keep_descriptors = keep};
}

rendezvous::CoordinatorService::Options ServingEndpoint(const RunOptions::Job& job, const net::Credentials& credentials,
                                                        const std::string& address, const KeptDescriptors& keep) {
  rendezvous::CoordinatorService::Options serving = Serving(credentials, address, keep);
  serving.host = EndpointOpenTo(job, address);
  serving.port = job.endpoint.port;
  return serving;
}

constexpr std::string_view kProtectedBy = "--rdzv-conf token_file=,tls_cert=,tls_key=,tls_ca= protect it";

// Warns if `host` does not name this machine: the other nodes dial it in vain, and nothing else here would show that.
void SayIfElsewhere(const std::string& host, const std::vector<std::string>& resolved) {
  if (MeansThisMachine(host, ThisMachine(), resolved)) return;
  const std::string addresses = Join(resolved, ", ");
  log::Warning(
      fmt::format("node rank 0 is here, but {} {}; give --master-addr a name or an address by which the other "
                  "nodes reach this machine",
                  addresses.empty() || addresses == host ? host : fmt::format("{} ({})", host, addresses),
                  addresses.empty() ? "does not resolve here" : "is not an address of this machine"));
}

// Logs why a node that dials the endpoint listens, too, if strangers could connect.
void SayStandingBy(const net::Credentials& credentials, const std::string& host, int port) {
  if (!credentials.token.empty() || credentials.tls() || IsLoopbackHost(host)) return;
  log::Info(
      fmt::format("standing by on port {} of {}, to coordinate the job if its coordinator is lost (without token or "
                  "TLS, as torchrun's ports are; {})",
                  port, host.empty() ? "every address" : host, kProtectedBy));
}

std::vector<std::string> Texts(const std::vector<ip::address>& addresses) {
  std::vector<std::string> texts;
  for (const ip::address& address : addresses) texts.push_back(address.to_string());
  return texts;
}

struct Search : std::enable_shared_from_this<Search> {
  boost::asio::io_context& loop;
  const RunOptions::Job& job;
  net::Credentials credentials;
  std::string node_name;
  KeptDescriptors keep;
  std::function<void(StatusOr<RendezvousPlace>)> done;
  net::Resolver resolver;

  Search(boost::asio::io_context& loop, const RunOptions::Job& job) : loop(loop), job(job), resolver(loop) {}

  // Whether the machine that the endpoint's host names serves it, and not the one of a rank.
  bool ServedByName() const { return !job.is_host && job.backend != Backend::kStatic; }

  void Resolved(const std::vector<ip::address>& addresses) {
    const std::vector<std::string> texts = Texts(addresses);
    bool guessed = false;
    bool host = false;
    if (ServedByName()) {
      host = guessed = MeansThisMachine(job.endpoint.host, ThisMachine(), texts);
    } else if (job.is_host) {
      host = *job.is_host;
    } else {
      host = job.node_rank == 0;
      if (host) SayIfElsewhere(job.endpoint.host, texts);
    }
    auto place = Serve(OwnAddress(loop, job, addresses), host, guessed);
    if (place.ok() && ServedByName() && !host && addresses.empty())
      place->endpoint_is = RendezvousPlace::Endpoint::kUnknown;
    done(std::move(place));
  }

  StatusOr<RendezvousPlace> Serve(std::string address, bool host, bool guessed) {
    RendezvousPlace place;
    place.address = std::move(address);
    place.keep = keep;
    rendezvous::Coordinator::Options conducting{
        .self_node = node_name, .only_run_id = job.run_id, .in_pods = job.in_cluster};
    if (host && job.shared.max_nodes > 1) {
      conducting.endpoint_hint = EndpointHint(job.endpoint.host, ServedByName() ? ThisMachine() : MachineNames{});
    }
    place.coordinator = std::make_unique<rendezvous::Coordinator>(loop, conducting);
    place.behind_store = host && job.backend == Backend::kStatic;
    if (host) {
      rendezvous::CoordinatorService::Options serving = ServingEndpoint(job, credentials, place.address, keep);
      if (place.behind_store) serving.host = "127.0.0.1", serving.port = 0;
      auto service = rendezvous::CoordinatorService::Serve(loop, *place.coordinator, serving);
      if (service.ok()) {
        place.service = *std::move(service);
        SayIfOpen(credentials, EndpointOpenTo(job, place.address), job.endpoint.port, kProtectedBy);
      } else if (!guessed || !absl::IsAlreadyExists(service.status())) {
        return Annotate(service.status(), fmt::format("cannot serve the endpoint {}",
                                                      JoinHostPort(job.endpoint.host, job.endpoint.port)));
      } else {
        place.endpoint_is = RendezvousPlace::Endpoint::kTaken;
      }
    }
    if (!place.service) {
      place.endpoint = JoinHostPort(job.endpoint.host, job.endpoint.port);
      rendezvous::CoordinatorService::Options serving = Serving(credentials, place.address, keep);
      serving.port = 0;
      auto service = rendezvous::CoordinatorService::Serve(loop, *place.coordinator, serving);
      if (!service.ok()) return Annotate(service.status(), "cannot open a control port");
      place.service = *std::move(service);
      SayStandingBy(credentials, serving.host, place.service->port());
    }
    place.control_address = JoinHostPort(place.address, place.behind_store ? job.endpoint.port : place.service->port());
    place.coordinator->SetPlace(place.control_address, !place.endpoint.empty());
    return place;
  }
};

// Sets place->endpoint_is, once the endpoint's name resolves.
void AskForEndpoint(boost::asio::io_context& loop, const RunOptions::Job& job, RendezvousPlace* place) {
  if (place->question) return;
  place->question = std::make_unique<net::Resolver>(loop);
  place->question->Resolve(
      job.endpoint.host, kResolveLimit, [&loop, &job, place](StatusOr<std::vector<ip::address>> addresses) {
        using Endpoint = RendezvousPlace::Endpoint;
        if (addresses.ok()) {
          const bool here = MeansThisMachine(job.endpoint.host, ThisMachine(), Texts(*addresses));
          place->endpoint_is = here ? Endpoint::kTaken : Endpoint::kElsewhere;
        }
        // Destroyed later, since the resolver is calling this function.
        boost::asio::post(loop, [question = std::shared_ptr<net::Resolver>(std::move(place->question))] {});
      });
}

}  // namespace

std::string OpenTo(const std::string& address) {
  if (address == "localhost") return "127.0.0.1";
  return IsLoopbackHost(address) ? address : "";
}

std::string EndpointOpenTo(const RunOptions::Job& job, const std::string& address) {
  return OpenTo(IsLoopbackHost(job.endpoint.host) ? job.endpoint.host : address);
}

void SayIfOpen(const net::Credentials& credentials, const std::string& host, int port, std::string_view remedy) {
  if (!credentials.token.empty() || credentials.tls() || IsLoopbackHost(host)) return;
  log::Info(fmt::format("serving the rendezvous on port {} of {}, without token or TLS, as torchrun does; {}", port,
                        host.empty() ? "every address" : host, remedy));
}

bool TakeEndpoint(boost::asio::io_context& loop, const RunOptions::Job& job, const net::Credentials& credentials,
                  RendezvousPlace* place) {
  if (place->endpoint_is == RendezvousPlace::Endpoint::kUnknown) AskForEndpoint(loop, job, place);
  if (place->endpoint_is != RendezvousPlace::Endpoint::kTaken) return false;
  auto service = rendezvous::CoordinatorService::Serve(loop, *place->coordinator,
                                                       ServingEndpoint(job, credentials, place->address, place->keep));
  if (!service.ok()) return false;  // another agent of this machine was faster
  place->endpoint_service = *std::move(service);
  place->coordinator->TakeEndpoint(JoinHostPort(place->address, job.endpoint.port));
  SayIfOpen(credentials, EndpointOpenTo(job, place->address), job.endpoint.port, kProtectedBy);
  return true;
}

void FindRendezvousPlace(boost::asio::io_context& loop, const RunOptions::Job& job, const net::Credentials& credentials,
                         const std::string& node_name, KeptDescriptors keep,
                         std::function<void(StatusOr<RendezvousPlace>)> done) {
  bool elsewhere = job.is_host == false && !job.endpoint.host.empty();
  if (job.shared.max_nodes == 1 && !elsewhere) {
    RendezvousPlace place;
    place.address = job.local_addr.empty() ? "127.0.0.1" : job.local_addr;
    const rendezvous::Coordinator::Options conducting{.self_node = node_name, .only_run_id = job.run_id};
    place.coordinator = std::make_unique<rendezvous::Coordinator>(loop, conducting);
    auto shared = std::make_shared<RendezvousPlace>(std::move(place));
    boost::asio::post(loop, [done, shared] { done(std::move(*shared)); });
    return;
  }
  auto search = std::make_shared<Search>(loop, job);
  search->credentials = credentials;
  search->node_name = node_name;
  search->keep = std::move(keep);
  search->done = std::move(done);
  search->resolver.Resolve(job.endpoint.host, kResolveLimit, [search](StatusOr<std::vector<ip::address>> addresses) {
    search->Resolved(addresses.ok() ? *addresses : std::vector<ip::address>{});
  });
}

}  // namespace muster::agent
