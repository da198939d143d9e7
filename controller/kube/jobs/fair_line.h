// SPDX-License-Identifier: Apache-2.0
// A line of keys (KeyOf) that serves namespaces in turn: a tenant with a thousand keys in it delays the key of another
// by one. Keys of one namespace keep their order. Pure.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace muster::controller {

// The namespace of a key; empty: it has none.
std::string_view NamespaceOf(std::string_view key);

class FairLine {
 public:
  void Push(const std::string& key);
  // The next key of the first namespace in turn that `may` allows. nullopt: there is none.
  std::optional<std::string> Pop(const std::function<bool(std::string_view ns)>& may);
  void Erase(const std::string& key);

 private:
  std::map<std::string, std::deque<std::string>, std::less<>> keys_;  // by namespace; none is empty
  std::deque<std::string> turns_;                                     // the namespaces of keys_
};

}  // namespace muster::controller
