// SPDX-License-Identifier: Apache-2.0
// The endpoint of S3 and how it is addressed, by the rules of the AWS SDKs: environment and chosen profile, in
// botocore's order, plus the names of Kubeflow, KServe and s5cmd. aws/identity.h finds the keys. Pure.
//
// The first that is set wins:
//   region      REGION (Kubeflow; "auto" without an endpoint: none), AWS_REGION, AWS_DEFAULT_REGION, profile region
//   endpoint    ENDPOINT (Kubeflow; https if it has no scheme), AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, S3_ENDPOINT_URL
//               (s5cmd), S3_ENDPOINT with S3_USE_HTTPS (KServe), endpoint_url of s3 in the profile's services, profile
//               endpoint_url; AWS_IGNORE_CONFIGURED_ENDPOINT_URLS leaves out AWS_* and the profile's
//   style       S3_USER_VIRTUAL_BUCKET (KServe), profile s3.addressing_style
//   accelerate  S3_USE_ACCELERATE (KServe), profile s3.use_accelerate_endpoint
//   dualstack   profile s3.use_dualstack_endpoint, AWS_USE_DUALSTACK_ENDPOINT, profile use_dualstack_endpoint
//   FIPS        AWS_USE_FIPS_ENDPOINT, profile use_fips_endpoint
//   TLS         S3_VERIFY_SSL (KServe); certificates: ca_bundle.h
//   payer       AWS_REQUEST_PAYER=requester (GDAL's name; the SDKs have none)
// For users: docs/initializers.md, "S3".
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "initializers/aws/config.h"

namespace muster::initializers {

struct S3Place {
  std::string region;        // empty: learnt from the server; us-east-1 is tried first
  std::string endpoint;      // "https://host[:port][/base]"; empty: AWS's own by bucket and region
  bool virtual_host = true;  // bucket.host/key; else host/bucket/key
  bool dualstack = false;    // this and the next two: only for AWS's own endpoints
  bool fips = false;
  bool accelerate = false;
  bool requester_pays = false;
  bool verify_tls = true;
  std::string ca_bundle;  // path; empty: the system's
  bool operator==(const S3Place&) const = default;
};

// With a custom endpoint, path style is the default, as in botocore. A bucket whose name cannot stand in a host name,
// or has a '.' with TLS, is always addressed by path style. An endpoint that is a plain one of AWS,
// "https://s3.REGION.amazonaws.com", sets the region and keeps path style.
//
// InvalidArgument names the variable, or the key, profile and file: a bad value, or accelerate where it is impossible.
// Unimplemented: ARNs for buckets, directory buckets (S3 Express).
StatusOr<S3Place> FindS3Place(const AwsConfig& config, std::string_view bucket);

// The scheme, host and path of a request for a key of a bucket: {"https://b.s3.eu-west-1.amazonaws.com", "/a%20b"}.
struct S3Address {
  std::string origin;  // scheme://host[:port]
  std::string host;    // value of the Host header
  std::string path;    // encoded; for an empty key (the bucket): "/" if the bucket is in the host, else "/bucket"
  bool operator==(const S3Address&) const = default;
};
// `place` comes from FindS3Place; its region may have been learnt since.
S3Address AddressOf(const S3Place& place, std::string_view bucket, std::string_view key);

// Where roles are assumed: AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL, the profile's, or AWS's own of the region.
struct StsPlace {
  std::string endpoint;  // "https://sts.eu-west-1.amazonaws.com"; the form is posted to its path, or "/"
  std::string region;    // to sign for; never empty
  bool operator==(const StsPlace&) const = default;
};
StatusOr<StsPlace> FindStsPlace(const AwsConfig& config);

// The domain of the region's partition: "amazonaws.com".
std::string_view AwsDomain(std::string_view region);

}  // namespace muster::initializers
