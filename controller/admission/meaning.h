// Parts of objects compared by what they mean, not by how they are written. Pure; outside bytes.
#pragma once

#include <set>
#include <string>

#include "base/json_fields.h"
#include "controller/api/train_job.h"

namespace muster::controller {

// What is null or empty ("", [], {}, an object of such) counts as absent, as typed clients leave it out; resources are
// amounts: "1000m" is 1. Null pointers: absent.
bool SameMeaning(const Json* one, const Json* other);

// The names of the fields that differ between two objects; a null pointer is an object without fields.
std::set<std::string> Differing(const Json* one, const Json* other);

// What it says before it is known to be well-formed, with its defaults.
RuntimeRef RuntimeRefOf(const Json& train_job);
bool IsSuspended(const Json& train_job);
bool IsBeingDeleted(const Json& object);

// Shown to whom uses a runtime that has label trainer.kubeflow.org/support: deprecated.
bool IsDeprecated(const Json& runtime);
std::string DeprecationOf(std::string_view what, std::string_view name);

}  // namespace muster::controller
