// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/ca_bundle.h"

#include <gtest/gtest.h>

#include "tests/initializers/aws_case.h"

namespace muster::initializers {
namespace {

// All variables are set; the one that wins is removed, and so on until none is left.
TEST(CaBundle, InTheOrderOfEachOnesClient) {
  const struct {
    Scheme scheme;
    std::string profile;
    std::vector<std::string> paths;
  } rows[] = {
      {Scheme::kS3, "", {"/aws", "/kserve/cabundle.crt", "/requests", "/curl", "/ssl", ""}},
      {Scheme::kS3, "/profile", {"/aws", "/profile"}},
      {Scheme::kHuggingFace, "", {"/requests", "/curl", "/ssl", "/kserve/cabundle.crt", ""}},
      {Scheme::kGcs, "", {"/requests", "/curl", "/ssl", "/kserve/cabundle.crt", ""}},
      {Scheme::kHttp, "", {"/curl", "/ssl", "/requests", "/aws", "/kserve/cabundle.crt", ""}},
  };
  for (const auto& row : rows) {
    AwsCase given = {.variables = {{"AWS_CA_BUNDLE", " /aws "},
                                   {"REQUESTS_CA_BUNDLE", "/requests"},
                                   {"CURL_CA_BUNDLE", "/curl"},
                                   {"SSL_CERT_FILE", "/ssl"},
                                   {"CA_BUNDLE_VOLUME_MOUNT_POINT", "/kserve"},
                                   {"CA_BUNDLE_CONFIGMAP_NAME", "certificates"}}};
    for (const std::string& path : row.paths) {
      EXPECT_EQ(FindCaBundle(row.scheme, given.Variables(), row.profile), path);
      for (auto& [name, value] : given.variables) {
        if (path.starts_with(value) || value == " " + path + " ") value = " ";
      }
    }
  }
}

TEST(CaBundle, HalfOfKServesPairIsNone) {
  const AwsCase given = {.variables = {{"CA_BUNDLE_VOLUME_MOUNT_POINT", "/kserve"}}};
  EXPECT_EQ(FindCaBundle(Scheme::kHttp, given.Variables()), "");
}

TEST(CaBundle, NamesThatCount) {
  EXPECT_EQ(CaVariables(Scheme::kGcs),
            "REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE, SSL_CERT_FILE, CA_BUNDLE_VOLUME_MOUNT_POINT, SSL_CERT_DIR");
}

}  // namespace
}  // namespace muster::initializers
