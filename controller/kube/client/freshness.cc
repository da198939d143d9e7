// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/freshness.h"

#include <algorithm>

#include "base/text.h"
#include "controller/api/lenient.h"

namespace muster::controller {

std::string KeyOf(std::string_view ns, std::string_view name) { return fmt::format("{}/{}", ns, name); }

bool IsOlder(const Meta& a, const Meta& b) {
  const auto first = ParseInt(a.resource_version), second = ParseInt(b.resource_version);
  return first && second && *first < *second;
}

bool IsNews(const Meta& meta, const Meta& known) {
  return !IsOlder(meta, known) && (meta.resource_version.empty() || meta.resource_version != known.resource_version);
}

bool IsGone(const Meta& known, const GoneObject& gone) {
  const auto version = ParseInt(known.resource_version), end = ParseInt(gone.version);
  return !version || !end || *version <= *end;
}

void ToldDeletions::Note(const Resource& resource, const GoneObject& gone) {
  int64_t& until = until_[resource.plural];
  until = std::max(until, ParseInt(gone.version).value_or(0));
}

bool ToldDeletions::Cover(const Resource& resource, const Json& object) const {
  const auto until = until_.find(resource.plural);
  const auto version = ParseInt(TextField(PartOf(object, "metadata"), "resourceVersion"));
  return until != until_.end() && version && *version <= until->second;
}

}  // namespace muster::controller
