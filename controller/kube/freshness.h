// Keys of objects, and which of two states of an object is the newer one. Pure.
#pragma once

#include <string>
#include <string_view>

#include "controller/api/meta.h"
#include "controller/kube/informer_state.h"

namespace muster::controller {

// "namespace/name".
std::string KeyOf(std::string_view ns, std::string_view name);

// True if `a` has the lower resourceVersion. resourceVersions can be compared as numbers (KEP-5504).
bool IsOlder(const Meta& a, const Meta& b);
// True if `meta` is neither older than `known` nor the same version. So reading an object again wakes nobody.
bool IsNews(const Meta& meta, const Meta& known);
// False: `known` is newer than `gone`, so it is another object of that name. An empty version counts as the newest.
bool IsGone(const Meta& known, const GoneObject& gone);

}  // namespace muster::controller
