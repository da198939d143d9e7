// SPDX-License-Identifier: Apache-2.0
// The c10d store of the next round with node rank 0 here. Each round has an empty one, so that no key of an attempt is
// left in the next. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "agent/rendezvous_place.h"
#include "agent/workers/run_options.h"
#include "base/descriptors.h"
#include "base/status.h"
#include "rendezvous/store/server.h"

namespace muster::agent {

class RoundStore {
 public:
  // `goes` gets a store that is about to be closed, for its counts. `options` must outlive this.
  RoundStore(boost::asio::io_context& loop, const RunOptions& options, KeptDescriptors keep,
             std::function<void(const store::StoreServer&)> goes);

  // An empty store in place of the last one; returns its port. The node with the static rank 0 keeps port and store,
  // as torchrun's does, and gets a new key space. Any other node keeps a store that no connection has come to, unless
  // it was `told` to the workers of a round: one of them may still connect. The error says which port cannot be served,
  // and why.
  StatusOr<int> Renew(const RendezvousPlace& place, bool told);
  // Nullptr: there is none.
  const store::StoreServer* server() const { return server_.get(); }

 private:
  StatusOr<std::unique_ptr<store::StoreServer>> Open(const RendezvousPlace& place) const;
  // Whether the store's port is that of the endpoint.
  bool AtEndpoint() const;

  boost::asio::io_context& loop_;
  const RunOptions& options_;
  const KeptDescriptors keep_;
  const std::function<void(const store::StoreServer&)> goes_;
  std::unique_ptr<store::StoreServer> server_;
};

}  // namespace muster::agent
