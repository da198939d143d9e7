// Where to ask for the credentials that the container or the machine gives to this process. Pure.
//
// Steps 6 and 7 of the identities in docs/initializers.md, "S3".
#pragma once

#include <optional>

#include "base/status.h"
#include "initializers/aws/config.h"
#include "initializers/aws/identity.h"

namespace muster::initializers {

// Nothing: no variable asks for it. InvalidArgument: a URL that the token must not be sent to, that is http to anything
// but this machine and the addresses of ECS and EKS; a token that could not stand in a header.
StatusOr<std::optional<ContainerEndpoint>> FindContainerEndpoint(const AwsConfig& config);

// FailedPrecondition: AWS_EC2_METADATA_DISABLED, so that nothing is left. InvalidArgument: a bad endpoint or number.
StatusOr<InstanceMetadata> FindInstanceMetadata(const AwsConfig& config);

}  // namespace muster::initializers
