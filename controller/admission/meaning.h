// SPDX-License-Identifier: Apache-2.0
// Compares parts of objects by meaning: different notations of one value are equal. Pure; untrusted input.
#pragma once

#include <set>
#include <string>

#include "base/json_fields.h"
#include "controller/api/train_job.h"

namespace muster::controller {

// Null and empty values ("", [], {}, an object of such values) count as absent, since typed clients leave them out.
// Resources are compared as quantities: "1000m" is 1. A null pointer counts as absent.
bool SameMeaning(const Json* one, const Json* other);

// The names of the fields that differ between two objects; a null pointer is an object without fields.
std::set<std::string> Differing(const Json* one, const Json* other);

// These read a TrainJob or another object that need not be well-formed. RuntimeRefOf() fills in the defaults.
RuntimeRef RuntimeRefOf(const Json& train_job);
bool IsSuspended(const Json& train_job);
bool IsBeingDeleted(const Json& object);

// Whether a runtime has the label trainer.kubeflow.org/support: deprecated, and the warning for its users.
bool IsDeprecated(const Json& runtime);
std::string DeprecationOf(std::string_view what, std::string_view name);

}  // namespace muster::controller
