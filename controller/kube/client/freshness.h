// SPDX-License-Identifier: Apache-2.0
// Keys of objects, and which of two states of an object is the newer one. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "controller/api/meta.h"
#include "controller/kube/client/informer_state.h"
#include "controller/kube/client/resource.h"

namespace muster::controller {

// "namespace/name".
std::string KeyOf(std::string_view ns, std::string_view name);

// True if `a` has the lower resourceVersion. resourceVersions can be compared as numbers (KEP-5504).
bool IsOlder(const Meta& a, const Meta& b);
// True if `meta` is neither older than `known` nor the same version. So reading an object again wakes nobody.
bool IsNews(const Meta& meta, const Meta& known);
// False: `known` is newer than `gone`, so it is another object of that name. An empty version counts as the newest.
bool IsGone(const Meta& known, const GoneObject& gone);

// Until which resourceVersion a watch has told of deletions, for each kind. The answer to a write may come after the
// watch has told that the object is gone; taken as news, it would bring the object back for ever.
class ToldDeletions {
 public:
  void Note(const Resource& resource, const GoneObject& gone);
  // True if the answer `object` is as old as a told deletion of its kind. A watch tells in order, so the object is
  // known or gone.
  bool Cover(const Resource& resource, const Json& object) const;

 private:
  std::map<std::string, int64_t> until_;  // by plural
};

}  // namespace muster::controller
