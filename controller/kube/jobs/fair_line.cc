// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/fair_line.h"

#include <algorithm>

namespace muster::controller {

std::string_view NamespaceOf(std::string_view key) {
  const size_t slash = key.find('/');
  return slash == std::string_view::npos ? std::string_view() : key.substr(0, slash);
}

void FairLine::Push(const std::string& key) {
  const auto [found, added] = keys_.try_emplace(std::string(NamespaceOf(key)));
  if (added) turns_.push_back(found->first);
  found->second.push_back(key);
}

std::optional<std::string> FairLine::Pop(const std::function<bool(std::string_view ns)>& may) {
  const auto turn = std::find_if(turns_.begin(), turns_.end(), may);
  if (turn == turns_.end()) return std::nullopt;
  std::string ns = std::move(*turn);
  turns_.erase(turn);
  const auto found = keys_.find(ns);
  std::string key = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) {
    keys_.erase(found);
  } else {
    turns_.push_back(std::move(ns));
  }
  return key;
}

void FairLine::Erase(const std::string& key) {
  const auto found = keys_.find(NamespaceOf(key));
  if (found == keys_.end()) return;
  std::erase(found->second, key);
  if (!found->second.empty()) return;
  std::erase(turns_, found->first);
  keys_.erase(found);
}

}  // namespace muster::controller
