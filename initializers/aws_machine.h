// Who the container or the machine around us says we are: where to ask. Pure.
//
// Reference: initializers.md 2.3, steps 7 and 8.
#pragma once

#include <optional>

#include "base/status.h"
#include "initializers/aws_config.h"
#include "initializers/aws_identity.h"

namespace muster::initializers {

// Nothing: no variable asks for it. InvalidArgument: a URL that the token must not be sent to, that is http to anything
// but this machine and the addresses of ECS and EKS; a token that could not stand in a header.
StatusOr<std::optional<ContainerEndpoint>> FindContainerEndpoint(const AwsConfig& config);

// FailedPrecondition: AWS_EC2_METADATA_DISABLED, so that nothing is left. InvalidArgument: a bad endpoint or number.
StatusOr<InstanceMetadata> FindInstanceMetadata(const AwsConfig& config);

}  // namespace muster::initializers
