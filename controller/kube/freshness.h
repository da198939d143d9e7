// Objects by their keys, and which of two states of one is the newer. Pure.
#pragma once

#include <string>
#include <string_view>

#include "controller/api/meta.h"
#include "controller/kube/informer_state.h"

namespace muster::controller {

// "namespace/name".
std::string KeyOf(std::string_view ns, std::string_view name);

// True where `a` is older than `b`, by resourceVersions, which grow (KEP-5504).
bool IsOlder(const Meta& a, const Meta& b);
// Of the same object: neither older nor what is known. Who reads an object again is not woken by it.
bool IsNews(const Meta& meta, const Meta& known);
// False: `known` is newer, so it is another object of the name. A version that is empty is the newest.
bool IsGone(const Meta& known, const GoneObject& gone);

}  // namespace muster::controller
