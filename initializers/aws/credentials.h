// Keys for S3 requests from the identity that was found (aws/identity.h): kept, and renewed before they expire.
//
// Source: AWS SDKs reference (container and IMDSv2 providers, AssumeRoleWithWebIdentity, SSO portal,
// credential_process). An identity that fails is an error that names it: never a fall-through to another.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "http/conversation.h"
#include "initializers/aws/identity.h"
#include "initializers/aws/s3.h"
#include "initializers/aws/settings.h"

namespace muster::initializers {

// InvalidArgument: that identity cannot be used, and why.
StatusOr<std::unique_ptr<AwsKeySource>> MakeAwsKeySource(const http::Persistence& persistence,
                                                         const AwsIdentity& identity, const StsPlace& sts);

}  // namespace muster::initializers
