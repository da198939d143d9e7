// SPDX-License-Identifier: Apache-2.0
// AWS Signature Version 4 for requests without a body, and for the short forms of STS. Pure.
//
// Source: AWS General Reference, "Create a signed AWS API request"; botocore's S3SigV4Auth for the rules of S3: the
// path is encoded once and not normalised ("//", "/./" stay), and the payload hash is sent in a header. For any other
// service the path is encoded once more, and the payload hash is only in the signature.
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
  std::string host;        // value of the Host header: with the port unless it is the default of the scheme
  std::string path = "/";  // encoded, exactly as sent
  http::QueryParameters query;
  HeaderList headers;  // to sign besides host and those that Sign adds: every other x-amz-*, content-type, range
  std::string body;    // hashed; empty for GET and HEAD
};

struct SigningScope {
  std::string region;
  std::string service;  // "s3", "sts"
};

// Returns the headers to add to the request: x-amz-date, x-amz-content-sha256 (S3), x-amz-security-token (if there is
// one), Authorization. `unix_seconds`: now, corrected by the server's clock; from year 1 to 9999.
HeaderList Sign(const SigningRequest& request, const SigningScope& scope, const AwsKeys& keys, int64_t unix_seconds);

}  // namespace muster::initializers
