// An environment for tests: what ParseRun and the wirings look names up in.
#pragma once

#include <map>
#include <string>

#include "agent/flag_reader.h"

namespace muster::agent {

using Environment = std::map<std::string, std::string>;

inline Getenv LookUp(const Environment& environment) {  // `environment` must outlive it
  return [&environment](std::string_view name) -> std::optional<std::string> {
    auto found = environment.find(std::string(name));
    if (found == environment.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace muster::agent
