// SPDX-License-Identifier: Apache-2.0
// The followed objects of jobs of one kind (reconcile/repair.h), by job, as watches and answers to writes bring them.
// Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "controller/kube/client/freshness.h"
#include "controller/reconcile/observed.h"

namespace muster::controller {

class OwnObjects {
 public:
  using OwnerOf = std::function<std::string(const Meta& object)>;  // the key of its job; empty: it has none
  using Changed = std::function<void(const std::string& job)>;     // an object of the job is new, edited or gone

  OwnObjects(OwnerOf owner_of, Changed changed) : owner_of_(std::move(owner_of)), changed_(std::move(changed)) {}

  // Drops what is not newer than the known state.
  void Put(const Json& object);
  void Remove(const std::string& kind, const GoneObject& gone);

  const std::vector<ObservedObject>& Of(const std::string& job) const;  // valid until the next Put or Remove

 private:
  const OwnerOf owner_of_;
  const Changed changed_;
  const std::vector<ObservedObject> none_;
  std::map<std::string, std::vector<ObservedObject>> objects_;         // by key of the job
  std::map<std::pair<std::string, std::string>, std::string> owners_;  // keys of jobs, by kind and key of the object
};

}  // namespace muster::controller
