// Names of a run's pods, as a cluster's DNS has them, and their addresses, one for each host name. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"

namespace muster::controller {

// The pod's host name: spec.hostname, else its own name. It stays when a Job's pod is made anew.
std::string HostOf(const Json& pod);

class PodNames {
 public:
  // A pod that takes another one's place has its host name, and so its address. One of 127.0.0.0/8, where none is set.
  std::string AddressOf(const Json& pod);
  void SetAddress(const std::string& host, std::string address);

  // The names that stand for one pod alone, with its address: its host name, and <hostname>.<subdomain> with what may
  // follow it.
  std::map<std::string, std::string> NamesOf(const std::vector<const Json*>& pods);

  // What stands in /etc/hosts: the name of each pod, <hostname>.<subdomain> where there is a Service of that name, and
  // the names of Services, each also with .<namespace>, .svc and .cluster.local behind it.
  std::string FileOf(const std::vector<const Json*>& pods, const std::vector<const Json*>& services);

 private:
  std::map<std::string, std::string> addresses_;  // by host name
};

// `text` with each of the names that stands in it as a whole name replaced by its address, for a container whose names
// nobody resolves. What has been put in is not looked at again.
std::string WithAddresses(std::string_view text, const std::map<std::string, std::string>& names);

}  // namespace muster::controller
