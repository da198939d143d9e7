// Files of Kubernetes objects: YAML or JSON, several documents in one. Pure; outside bytes. yaml-cpp reads them.
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
  std::map<std::string, int> lines;  // path ("spec.trainer.env[0].name") -> line in the file, from 1

  // The line of `path`, else that of the nearest path above it. What an alias stands for has the alias's line.
  int LineOf(std::string_view path) const;
};

// Scalars as kubectl reads them: a quoted one is always text; y, n, yes, no, on, off (also Yes, YES ...) are true and
// false beside true and false; 0400, 0o400, 0x100, 0b1, 1_000 are numbers; times and 12:30 are text; a key that is no
// text becomes one ("on:" is "true"). Anchors, aliases and merge keys (<<) are followed; a map's own keys win. A v1
// List gives its items. Documents without content are left out; each other one is an object. InvalidArgument names line
// and column: no YAML, bytes that are no UTF-8, a key twice in one map, a tag that is not YAML's own, aliases that make
// the documents more than `most_nodes` nodes, nesting beyond 100 levels.
StatusOr<std::vector<YamlDocument>> ReadYaml(std::string_view text, size_t most_nodes = 1'000'000);

// "job.yaml:12: spec.trainer.numNodes: 'four' is no whole number": `error` is about `document`, and begins with a path.
Status LocatedIn(const YamlDocument& document, std::string_view file, const Status& error);

// As kubectl prints it: maps in the order of their keys, two spaces a level.
std::string WriteYaml(const Json& object);

}  // namespace muster::controller
