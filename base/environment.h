// The variables that a process was started with, as a value: read once, looked up by name, handed on to children. The
// one way to read the environment. (CLI11 reads a flag's variable by itself, in the subcommands whose flags it parses.)
//
// Passive: it holds copies, and a change to it changes no process. Thread-safe as a std::vector is.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

// Kubernetes tells a pod where each Service of its namespace is, unless the pod's spec says enableServiceLinks: false:
// the Service muster-http puts MUSTER_HTTP_PORT=tcp://IP:PORT into it. Such a value is nobody's setting.
struct ServiceLink {
  std::string variable;
  std::string value;
  std::string service;  // as Kubernetes names it
};
// Of a variable NAME_PORT whose value is tcp://, udp:// or sctp:// with a numeric address and a port; nullopt: it is no
// link. The other variables of a Service (NAME_SERVICE_HOST, NAME_PORT_80_TCP_ADDR ...) have names that no setting has.
std::optional<ServiceLink> ReadServiceLink(std::string_view variable, std::string_view value);

class Environment {
 public:
  Environment() = default;
  // For tests: {{"NAME", "value"}, ...}.
  Environment(std::initializer_list<std::pair<std::string, std::string>> variables);
  // "NAME=VALUE"; of a name that is there twice the first entry counts, as for getenv().
  static Environment Of(std::vector<std::string> entries);
  // A copy of environ as it is now.
  static Environment OfProcess();

  // The value as it stands; one that is set to nothing is "". nullopt: not set, or a service link.
  std::optional<std::string> Get(std::string_view name) const;
  // Without white space at both ends; one of white space alone is as one that is not set.
  std::optional<std::string> NonBlank(std::string_view name) const;

  struct Variable {
    std::string name;
    std::string value;
  };
  // The first of `names` (a list with blanks between) that NonBlank() finds.
  std::optional<Variable> FirstOf(std::string_view names) const;

  void Set(std::string_view name, std::string_view value);  // one entry of the name is left
  void Unset(std::string_view name);

  // As execve() takes them, in the order they came in.
  const std::vector<std::string>& entries() const { return entries_; }

 private:
  std::vector<std::string> entries_;
};

}  // namespace muster
