// SPDX-License-Identifier: Apache-2.0
// The Kubernetes objects of one local run, in memory, as an API server would store them. One namespace. Pure: no I/O,
// and no clock but the given times.
//
// To a created object it adds what an API server adds: uid, creationTimestamp, resourceVersion, generation, and the
// labels of a Job's pods in its template. Names are unique within a kind. When an object is removed, the objects that
// it controls (owner references) are deleted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/status.h"

namespace muster::local {

class World {
 public:
  // `run`: 16 hexadecimal digits, different for each run. They are a part of each uid, from which IDs of a job are
  // made.
  explicit World(std::string run = std::string(16, '0')) : run_(std::move(run)) {}

  // Returns the object as it is stored. AlreadyExists: there is an object of that kind and name. InvalidArgument: the
  // object has no kind or no name.
  StatusOr<const Json*> Create(Json object, WallTime now);

  // Replaces the stored object of the same kind and name. If `object` has a uid, it must be the stored one's. What an
  // API server adds stays, also deletionTimestamp. generation rises if `spec` has changed. No effect if nothing has
  // changed. NotFound: the object is gone.
  Status Update(Json object, WallTime now);

  // Removes the object. An object with finalizers, or a pod that has not ended, only gets a deletionTimestamp; the
  // Update after which neither holds removes it. No effect if the object is gone already. `uid`: of the object that is
  // meant; empty: any object of that name.
  void Delete(std::string_view kind, std::string_view name, std::string_view uid, WallTime now);

  const Json* Find(std::string_view kind, std::string_view name) const;  // null: there is none
  std::vector<const Json*> List(std::string_view kind) const;            // in the order of their names
  // The objects of `kind` that the object with this uid controls.
  std::vector<const Json*> ControlledBy(std::string_view kind, std::string_view uid) const;

  uint64_t version() const { return version_; }  // rises with each change

 private:
  using Objects = std::map<std::pair<std::string, std::string>, Json>;  // by kind and name

  void Stamp(Json* object);
  void Remove(Objects::iterator object, WallTime now);

  const std::string run_;
  Objects objects_;
  uint64_t version_ = 0, uids_ = 0;
};

}  // namespace muster::local
