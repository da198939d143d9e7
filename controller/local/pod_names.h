// Names of a run's pods, as a cluster's DNS has them, and their addresses: one of 127.0.0.0/8 for each host name. Not
// thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json_fields.h"

namespace muster::controller {

// The pod's host name: spec.hostname, else its own name. It stays when a Job's pod is made anew.
std::string HostOf(const Json& pod);

class PodNames {
 public:
  // A pod that takes another one's place has its host name, and so its address.
  std::string AddressOf(const Json& pod);

  // What stands in /etc/hosts: the name of each pod, <hostname>.<subdomain> where there is a Service of that name, and
  // the names of Services, each also with .<namespace>, .svc and .cluster.local behind it.
  std::string FileOf(const std::vector<const Json*>& pods, const std::vector<const Json*>& services);

 private:
  std::map<std::string, std::string> addresses_;  // by host name
};

}  // namespace muster::controller
