// KServe's STORAGE_CONFIG, a JSON object out of a secret, and STORAGE_OVERRIDE_CONFIG, whose fields go before its:
// where an S3 store is and who we are, in place of the variables that mean the same.
//
//   {"type": "s3", "endpoint_url": "https://minio:9000", "access_key_id": "...", "secret_access_key": "...",
//    "region": "eu-west-1", "ca_bundle": "/path", "verify_ssl": "0", "anonymous": "true"}
//
// All but the type may be absent; others are nothing to us. Where it has one of the keys, the pod's keys and token are
// nothing to us either. Pure. For users: docs/initializers.md, "S3".
#pragma once

#include <string_view>

#include "base/status.h"
#include "initializers/settings.h"

namespace muster::initializers {

struct S3Variables {
  Environment environment;
  NameVariable name_of;  // "endpoint_url of STORAGE_CONFIG", or the variable itself
};

// The variables as they count for the S3 source `uri`. InvalidArgument: one of the two is no such object, or its type
// is not s3.
StatusOr<S3Variables> WithStorageConfig(const Environment& environment, std::string_view uri);

}  // namespace muster::initializers
