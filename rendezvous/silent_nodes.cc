// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/silent_nodes.h"

namespace muster::rendezvous {

SilentNodes::Key SilentNodes::KeyOf(const Round& round, size_t rank) {
  const std::string& name = round.seats[rank].node.name;
  return name.empty() ? Key{"", static_cast<int>(rank)} : Key{name, -1};
}

std::set<SilentNodes::Key> SilentNodes::KeysOf(const Round& round) {
  std::set<Key> keys;
  for (size_t rank = 0; rank < round.seats.size(); ++rank) keys.insert(KeyOf(round, rank));
  return keys;
}

void SilentNodes::Lost(const std::string& name, Node node) {
  nodes_[{name, -1}] = std::move(node);
  majority_.reset();
}

void SilentNodes::Missing(const Round& round, size_t rank) {
  nodes_[KeyOf(round, rank)] = {round.id, round.id, "", false};
  majority_.reset();
}

void SilentNodes::Came(const std::string& name, const std::string& incarnation, std::optional<int> rank) {
  if (nodes_.empty()) return;
  majority_.reset();
  if (rank) nodes_.erase({"", *rank});
  const auto silent = nodes_.find({name, -1});
  if (silent == nodes_.end()) return;
  if (silent->second.incarnation.empty() || silent->second.incarnation == incarnation) {
    nodes_.erase(silent);
  } else {
    silent->second.gone = true;
  }
}

void SilentNodes::RoundBegins(const Round& before) {
  before_ = before.id;
  before_keys_ = KeysOf(before);
  std::erase_if(nodes_, [this](const auto& node) { return node.second.told < before_; });
  majority_.reset();
}

bool SilentNodes::AreMajority(const Round& round) const {
  if (!majority_) {
    majority_ = !nodes_.empty() && (AreMajorityOf(round.id, KeysOf(round)) || AreMajorityOf(before_, before_keys_));
  }
  return *majority_;
}

bool SilentNodes::AreMajorityOf(RoundId id, const std::set<Key>& seats) const {
  size_t silent = 0;
  bool all_gone = true;
  for (const auto& [key, node] : nodes_) {
    if (node.knows > id || node.told < id || !seats.contains(key)) continue;
    ++silent;
    all_gone = all_gone && node.gone;
  }
  return silent * 2 > seats.size() && !all_gone;
}

}  // namespace muster::rendezvous
