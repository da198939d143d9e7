// SPDX-License-Identifier: Apache-2.0
// What each part of ProgramOf() reads, and where it reports wrong and ignored fields. Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/api/fields.h"
#include "local/pod/program.h"

namespace muster::local {

// Collects fields that have no effect here, each with the reason. If several containers have the same field with the
// same reason, there is one entry, with the path of the first.
class IgnoredFields {
 public:
  void OfContainer(const controller::Fields& container, std::string_view field, std::string_view reason);
  void Say(std::string_view path, std::string_view reason);

  std::vector<std::string> Take() { return std::move(texts_); }

 private:
  void Add(std::string_view field, std::string_view path, std::string_view reason);

  std::set<std::pair<std::string, std::string>> said_;  // field and reason
  std::vector<std::string> texts_;
};

struct PodInput {
  const Json& pod;
  const PodPlace& place;
  const FindObject& find;
  controller::Complaints* complaints;
  IgnoredFields* ignored;
};

// Collects what the pod and its containers ask for and do not get here. Leaves out fields that only a scheduler reads,
// or that only take rights away: no program needs these. `gpus`: of this machine; a container that asks for more is
// reported.
void NoteIgnored(const controller::Fields& spec, int gpus, IgnoredFields* ignored);

}  // namespace muster::local
