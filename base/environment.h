// SPDX-License-Identifier: Apache-2.0
// The environment variables of a process as a value: read once, looked up by name, passed on to children. All code
// reads the environment through this class, except CLI11, which reads the variables of the flags that it parses.
//
// It holds copies; a change to them changes no process. Thread-safe like a std::vector.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

// Kubernetes sets variables in a pod for each Service of its namespace, unless the pod's spec says enableServiceLinks:
// false. The Service muster-http gives MUSTER_HTTP_PORT=tcp://IP:PORT, which is not a user's setting.
struct ServiceLink {
  std::string variable;
  std::string value;
  std::string service;  // name of the Service
};
// The link of a variable NAME_PORT whose value is tcp://, udp:// or sctp:// with a numeric address and a port; else
// nullopt. No setting has a name like a Service's other variables (NAME_SERVICE_HOST, NAME_PORT_80_TCP_ADDR ...).
std::optional<ServiceLink> ReadServiceLink(std::string_view variable, std::string_view value);

class Environment {
 public:
  Environment() = default;
  // For tests: {{"NAME", "value"}, ...}.
  Environment(std::initializer_list<std::pair<std::string, std::string>> variables);
  // Entries are "NAME=VALUE". If a name occurs twice, the first entry counts, as in getenv().
  static Environment Of(std::vector<std::string> entries);
  // A copy of environ as it is now.
  static Environment OfProcess();

  // The unchanged value; "" if it is set but empty. nullopt: not set, or a service link.
  std::optional<std::string> Get(std::string_view name) const;
  // As Get(), without white space at both ends. nullopt also for an empty or blank value.
  std::optional<std::string> NonBlank(std::string_view name) const;

  struct Variable {
    std::string name;
    std::string value;
  };
  // The first variable of `names` (separated by blanks) that NonBlank() finds.
  std::optional<Variable> FirstOf(std::string_view names) const;

  void Set(std::string_view name, std::string_view value);  // replaces all entries of the name
  void Unset(std::string_view name);

  // "NAME=VALUE", as execve() takes them. Original order; entries of Set() come last.
  const std::vector<std::string>& entries() const { return entries_; }

 private:
  std::vector<std::string> entries_;
};

}  // namespace muster
