// SPDX-License-Identifier: Apache-2.0
// Kubernetes' service links (base/environment.h) with names of settings, which no command of the user may see. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"

namespace muster::agent {

// Every variable NAME_PORT that Muster, torch, JAX under Kubeflow, or XGBoost reads: a Service NAME would set it.
inline constexpr std::string_view kPortVariables[] = {
    "MUSTER_HTTP_PORT", "MUSTER_RSH_PORT",   "PET_MASTER_PORT",   "MASTER_PORT",
    "COORDINATOR_PORT", "DMLC_TRACKER_PORT", "DMLC_PS_ROOT_PORT",
};

// The variables of kPortVariables that are links.
std::vector<ServiceLink> LinksAmongSettings(const Environment& environment);
// A sentence with the variable, the Service and the remedy.
std::string Describe(const ServiceLink& link);
// `environment` without LinksAmongSettings(): a framework would take such a value for a number and fail. Links under
// other names stay, since a command may find its database by them.
Environment WithoutLinks(Environment environment);

}  // namespace muster::agent
