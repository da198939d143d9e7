// SPDX-License-Identifier: Apache-2.0
// KServe's STORAGE_CONFIG, a JSON object from a secret, and STORAGE_OVERRIDE_CONFIG, whose fields have precedence:
// place and keys of an S3 store, which replace the variables with the same meaning.
//
//   {"type": "s3", "endpoint_url": "https://minio:9000", "access_key_id": "...", "secret_access_key": "...",
//    "region": "eu-west-1", "ca_bundle": "/path", "verify_ssl": "0", "anonymous": "true"}
//
// All fields but the type may be absent; other fields are ignored. If it has one of the keys, the keys and the token in
// the pod's variables are ignored too. Pure. For users: docs/initializers.md, "S3".
#pragma once

#include <string_view>

#include "base/status.h"
#include "initializers/facts/settings.h"

namespace muster::initializers {

struct S3Variables {
  Environment environment;
  NameVariable name_of;  // "endpoint_url of STORAGE_CONFIG", or the name of the variable
};

// The variables for the S3 source `uri`. InvalidArgument: one of the two is not such an object, or its type is not s3.
StatusOr<S3Variables> WithStorageConfig(const Environment& environment, std::string_view uri);

}  // namespace muster::initializers
