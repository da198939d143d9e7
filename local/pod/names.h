// SPDX-License-Identifier: Apache-2.0
// The names of a run's pods as a cluster's DNS has them, and an address for each host name. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"

namespace muster::local {

// The pod's host name: spec.hostname, else the pod's name. The replacement of a Job's pod has the same host name.
std::string HostOf(const Json& pod);

class PodNames {
 public:
  // The address of the pod's host name, and so of its replacement: that of SetAddress(), else one of 127.0.0.0/8.
  std::string AddressOf(const Json& pod);
  void SetAddress(const std::string& host, std::string address);

  // Maps names that mean a single pod to its address: the host name, and <hostname>.<subdomain>, also with
  // .<namespace>, .svc and .cluster.local behind it.
  std::map<std::string, std::string> NamesOf(const std::vector<const Json*>& pods);

  // The text of /etc/hosts: each pod's host name, the Services that select it, and <hostname>.<subdomain> if one of
  // them is the subdomain. The last two also with .<namespace>, .svc and .cluster.local behind.
  std::string FileOf(const std::vector<const Json*>& pods, const std::vector<const Json*>& services);

 private:
  std::map<std::string, std::string> addresses_;  // by host name
};

// Replaces each of the names in `text`, as a whole name, by its address. For a container that cannot resolve these
// names. An address that has been inserted is not searched again.
std::string WithAddresses(std::string_view text, const std::map<std::string, std::string>& names);

}  // namespace muster::local
