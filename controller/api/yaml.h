// SPDX-License-Identifier: Apache-2.0
// Files of Kubernetes objects: YAML or JSON, several documents in one. Pure; untrusted input. The parser is yaml-cpp.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

struct YamlDocument {
  Json object;
  std::map<std::string, int> lines;  // by path ("spec.trainer.env[0].name"): line in the file, from 1

  // The line of `path`, else of the nearest path above it, else 1. Values that an alias repeats have the alias's line.
  int LineOf(std::string_view path) const;
};

// Scalars as kubectl reads them: a quoted scalar is always text; y, yes, on (also Yes, YES ...) are true, and n, no,
// off are false; 0400, 0o400, 0x100, 0b1, 1_000 are numbers; times and 12:30 are text; a key that is not text becomes
// one ("on:" is "true"). Anchors, aliases and merge keys (<<) are followed; a map's own keys win. A v1 List becomes its
// items. Empty documents are left out; every other document must be an object. InvalidArgument names line and column:
// no YAML, no UTF-8, control characters, a key twice in one map, a tag that is not YAML's own, more than `most_nodes`
// nodes in all documents (a node that an alias repeats counts again), more than 100 levels.
StatusOr<std::vector<YamlDocument>> ReadYaml(std::string_view text, size_t most_nodes = 1'000'000);

// "job.yaml:12: spec.trainer.numNodes: 'four' is not a whole number": `error` is about `document`, and begins with a
// path.
Status LocatedIn(const YamlDocument& document, std::string_view file, const Status& error);

// YAML as kubectl prints it: keys in alphabetical order, two spaces a level.
std::string WriteYaml(const Json& object);

}  // namespace muster::controller
