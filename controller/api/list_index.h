// SPDX-License-Identifier: Apache-2.0
// An index of the objects of a list by one of their fields, so that joining two lists takes linear time. Pure;
// untrusted input.
#pragma once

#include <map>
#include <string>

#include "base/json_fields.h"

namespace muster::controller {

// `J`: Json or const Json. Of several objects with the same text the first is found. The objects must outlive the index
// and stay where they are.
template <class J>
class ListIndex {
 public:
  ListIndex(J& list, const char* field) : field_(field) {
    for (J& object : list) Add(&object);
  }
  void Add(J* object) { objects_.try_emplace(TextField(*object, field_), object); }
  // Null: there is none.
  J* Find(const std::string& text) const {
    const auto found = objects_.find(text);
    return found == objects_.end() ? nullptr : found->second;
  }

 private:
  const char* const field_;
  std::map<std::string, J*> objects_;
};

}  // namespace muster::controller
