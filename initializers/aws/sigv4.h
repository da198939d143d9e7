// AWS Signature Version 4 for requests without a body, and for STS's short forms. Pure.
//
// Source: AWS General Reference, "Create a signed AWS API request"; botocore's S3SigV4Auth for S3's own rules: the path
// is encoded once and not normalised ("//", "/./" stay), the payload hash is a header. Any other service's path is
// encoded once more and its hash is in the signature alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/percent.h"

namespace muster::initializers {

struct AwsKeys {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // empty: none
  bool operator==(const AwsKeys&) const = default;
};

using HeaderList = std::vector<std::pair<std::string, std::string>>;  // names in any case

struct SigningRequest {
  std::string method = "GET";
  std::string host;        // as the Host header says it: with the port unless it is the scheme's own
  std::string path = "/";  // encoded, exactly as sent
  http::QueryParameters query;
  HeaderList headers;  // to sign beside host and those that Sign adds: every other x-amz-*, content-type, range
  std::string body;    // hashed; empty for GET and HEAD
};

struct SigningScope {
  std::string region;
  std::string service;  // "s3", "sts"
};

// The headers to add to the request: x-amz-date, x-amz-content-sha256 (S3), x-amz-security-token (where there is one),
// Authorization. `unix_seconds`: now, corrected by what the server said its clock is; from year 1 to 9999.
HeaderList Sign(const SigningRequest& request, const SigningScope& scope, const AwsKeys& keys, int64_t unix_seconds);

}  // namespace muster::initializers
