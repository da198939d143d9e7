// SPDX-License-Identifier: Apache-2.0
// Keys for S3 requests, from the identity of aws/identity.h. They are cached, and renewed before they expire.
//
// Source: AWS SDKs reference (container and IMDSv2 providers, AssumeRoleWithWebIdentity, SSO portal,
// credential_process). If the identity fails, the error names it; no other identity is tried.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "http/conversation.h"
#include "initializers/aws/identity.h"
#include "initializers/aws/s3.h"
#include "initializers/aws/settings.h"

namespace muster::initializers {

// InvalidArgument: the identity cannot be used; the message says why.
StatusOr<std::unique_ptr<AwsKeySource>> MakeAwsKeySource(const http::Persistence& persistence,
                                                         const AwsIdentity& identity, const StsPlace& sts);

}  // namespace muster::initializers
