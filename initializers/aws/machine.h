// SPDX-License-Identifier: Apache-2.0
// The endpoints that give credentials to this container or this machine: steps 6 and 7 of the identities in
// docs/initializers.md, "S3". Pure.
#pragma once

#include <optional>

#include "base/status.h"
#include "initializers/aws/config.h"
#include "initializers/aws/identity.h"

namespace muster::initializers {

// Nullopt: no variable names an endpoint. InvalidArgument: a URL to which the token must not be sent, that is http to
// anything but this machine and the addresses of ECS and EKS; a token that cannot stand in a header.
StatusOr<std::optional<ContainerEndpoint>> FindContainerEndpoint(const AwsConfig& config);

// FailedPrecondition: AWS_EC2_METADATA_DISABLED leaves no identity. InvalidArgument: a bad endpoint or number.
StatusOr<InstanceMetadata> FindInstanceMetadata(const AwsConfig& config);

}  // namespace muster::initializers
