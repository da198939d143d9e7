// Kubernetes' service links (base/environment.h) under names that are settings: what is said of them, and that no
// command of the user sees them. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"

namespace muster::agent {

// Every variable NAME_PORT that Muster reads, or torch, JAX under Kubeflow, or XGBoost: a Service of that name would
// set it.
inline constexpr std::string_view kPortVariables[] = {
    "MUSTER_HTTP_PORT", "MUSTER_RSH_PORT",   "PET_MASTER_PORT",   "MASTER_PORT",
    "COORDINATOR_PORT", "DMLC_TRACKER_PORT", "DMLC_PS_ROOT_PORT",
};

// Those of kPortVariables that are links.
std::vector<ServiceLink> LinksAmongSettings(const Environment& environment);
// Which variable, which Service, and the remedy.
std::string Describe(const ServiceLink& link);
// `environment` without LinksAmongSettings(): a framework would take such a value for a number and fail. Links under
// other names stay: a command may well look for its database so.
Environment WithoutLinks(Environment environment);

}  // namespace muster::agent
