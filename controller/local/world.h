// Kubernetes objects of one local run, in memory: what an API server would hold of it. One namespace. Pure: no I/O, and
// no clock but the times given.
//
// An object is as it was created, with what an API server adds: uid, creationTimestamp, resourceVersion, generation,
// and the labels of a Job's pods in its template. Names are unique within a kind. What an object controls (owner
// references) is deleted when the object is gone.
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

namespace muster::controller {

class World {
 public:
  // The object as it is stored now. AlreadyExists: there is one of that kind and name. InvalidArgument: it has no kind
  // or no name.
  StatusOr<const Json*> Create(Json object, WallTime now);

  // In the place of the one that is there, whose uid it must have, if it has one. What an API server adds stays,
  // deletionTimestamp too; generation rises where `spec` has changed. Nothing happens where nothing has changed.
  // NotFound: it is gone.
  Status Update(Json object, WallTime now);

  // It is gone. One with finalizers, and a pod that has not ended, gets a deletionTimestamp, and is gone by the Update
  // that takes the last of them off, or says that the pod has ended. Nothing happens where it is gone already. `uid`:
  // of the object that is meant; empty: whichever has the name.
  void Delete(std::string_view kind, std::string_view name, std::string_view uid, WallTime now);

  const Json* Find(std::string_view kind, std::string_view name) const;  // null: there is none
  std::vector<const Json*> List(std::string_view kind) const;            // in the order of their names
  // Those that the object with this uid controls.
  std::vector<const Json*> ControlledBy(std::string_view kind, std::string_view uid) const;

  uint64_t version() const { return version_; }  // it has risen: something has changed

 private:
  using Objects = std::map<std::pair<std::string, std::string>, Json>;  // by kind and name

  void Stamp(Json* object);
  void Remove(Objects::iterator object, WallTime now);

  Objects objects_;
  uint64_t version_ = 0, uids_ = 0;
};

}  // namespace muster::controller
