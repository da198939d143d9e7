// SPDX-License-Identifier: Apache-2.0
// The gRPC service in front of a Coordinator: one bidirectional stream per node.
//
// gRPC's threads only post to the loop; only the loop uses the Coordinator. Destruction cancels every stream.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "base/descriptors.h"
#include "base/status.h"
#include "net/credentials.h"
#include "rendezvous/coordinator.h"

namespace muster::rendezvous {

class CoordinatorService {
 public:
  struct Options {
    std::string host = "";  // numeric address to bind; empty: every address, IPv6 and IPv4
    int port = 0;           // 0: the kernel chooses
    net::Credentials credentials;
    KeptDescriptors keep_descriptors = nullptr;  // as in net/grpc_port.h
  };

  // Binds and serves at once. AlreadyExists: the port is taken. InvalidArgument: `host` is not a numeric address.
  static StatusOr<std::unique_ptr<CoordinatorService>> Serve(boost::asio::io_context& loop, Coordinator& coordinator,
                                                             const Options& options);
  ~CoordinatorService();
  CoordinatorService(const CoordinatorService&) = delete;
  CoordinatorService& operator=(const CoordinatorService&) = delete;

  int port() const;

 private:
  class Impl;
  explicit CoordinatorService(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::rendezvous
