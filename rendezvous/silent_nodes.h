// SPDX-License-Identifier: Apache-2.0
// Nodes of a round that fell silent and may live on. If they are the majority, they may have agreed on a stand-in of
// their own: this side may be the one that is cut off, and starts nothing. Part of membership.h's State. Pure.
//
// A Start may have been lost on the way. So a node counts for every round that may be the last one it knows.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "rendezvous/round.h"

namespace muster::rendezvous {

class SilentNodes {
 public:
  struct Node {
    RoundId knows;  // the oldest round that may be the last one it knows
    RoundId told;   // the newest such round
    std::string incarnation;
    bool gone = false;  // its process is known to be gone now
  };

  size_t size() const { return nodes_.size(); }

  void Lost(const std::string& name, Node node);
  // The node of this seat of a re-formed round has not reported. It may know that round only.
  void Missing(const Round& round, size_t rank);
  // A node has come: `rank` is the one that it had in the last round it knows. A new process under a silent node's name
  // says that the old process is gone now. It says nothing of what the old process joined before.
  void Came(const std::string& name, const std::string& incarnation, std::optional<int> rank);
  // A round begins after `before`, whose nodes are the last that could agree without this side.
  void RoundBegins(const Round& before);
  void Clear() { *this = SilentNodes(); }

  // More than half of the nodes of `round`, or of the one before it, are silent, and one of those may live.
  bool AreMajority(const Round& round) const;

 private:
  // Of a node, or of a seat whose node is not known.
  struct Key {
    std::string name;
    int rank = -1;  // -1: the name says who it is
    auto operator<=>(const Key&) const = default;
  };
  static Key KeyOf(const Round& round, size_t rank);
  static std::set<Key> KeysOf(const Round& round);
  bool AreMajorityOf(RoundId id, const std::set<Key>& seats) const;

  std::map<Key, Node> nodes_;
  RoundId before_;  // the round before the current one, and its nodes
  std::set<Key> before_keys_;
  mutable std::optional<bool> majority_;  // the last answer; empty: to be computed again
};

}  // namespace muster::rendezvous
