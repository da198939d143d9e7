// SPDX-License-Identifier: Apache-2.0
// The table of nodes and ranks of a run that goes on: a group for each node, a row for each rank. Cells are plain
// texts, so that an update can send the changed ones alone, and nothing that a worker wrote can become markup. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/messages.h"

namespace muster::agent {

struct TableRow {
  std::string id;                  // of the element
  std::vector<std::string> cells;  // a text for each column
  bool operator==(const TableRow&) const = default;
};
struct TableGroup {
  std::string id;              // depends on the node's name alone: what a reader has opened stays open in another round
  TableRow head;               // the node
  std::vector<TableRow> rows;  // its ranks
};
struct RankTable {
  std::vector<std::string> columns;
  std::vector<TableGroup> groups;
  bool with_gpu = false;
  bool open = false;  // groups are open at first
  size_t nodes_left_out = 0, ranks_left_out = 0;
  std::string outline;  // differs between two tables with other columns, groups or rows
};

struct TableLimits {
  size_t nodes = 512;
  size_t ranks = 2048;
  size_t open = 64;  // ranks; with more of them the groups are closed at first
};

// `slow`: the rank that is to be marked; -1: none. Beyond the limits whole nodes are left out, healthy ones first.
RankTable MakeRankTable(const rendezvous::StatusReport& report, int slow, const TableLimits& limits = {});

// "": there is no node.
std::string RankTableHtml(const RankTable& table);

// The cells that differ, as one JSON object: {"n-1f": [1, "running", 3, "7.9"]}: at the place 1 of the children of the
// element n-1f is the text "running". Rows of groups for which `shown` is false are left out. `before`: null, or a
// table with the same outline. "": nothing differs.
std::string ChangedCells(const RankTable* before, const RankTable& now,
                         const std::function<bool(const std::string& group)>& shown);

// A JSON string of a text that ShownText() or EscapeHtml() has made.
std::string JsonString(std::string_view text);

}  // namespace muster::agent
