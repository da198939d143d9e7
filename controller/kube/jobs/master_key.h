// SPDX-License-Identifier: Apache-2.0
// The key from which the tokens and SSH keys of jobs are derived (reconcile/derived_secrets.h): 32 random bytes in a
// Secret that all replicas share. The first replica that needs it creates the Secret. It is read once in a process,
// when a job first needs it: if somebody deletes the Secret, the leader keeps the key in use, and the next one makes
// another. Then a job's own Secret, if it was deleted as well, comes back with another content. Loop thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "controller/kube/client/api_client.h"

namespace muster::controller {

inline constexpr char kMasterKeySecret[] = "muster-master-key";

class MasterKey {
 public:
  // `ns`: of the Secret. `client` must outlive this object.
  MasterKey(ApiClient& client, std::string ns) : client_(client), ns_(std::move(ns)) {}

  // Unavailable: it cannot be read or created now, or its content is unusable; the message says what to do.
  boost::asio::awaitable<StatusOr<std::string>> Get();

 private:
  boost::asio::awaitable<StatusOr<Json>> Stored();

  ApiClient& client_;
  const std::string ns_;
  std::string key_;  // empty: not yet read
};

}  // namespace muster::controller
