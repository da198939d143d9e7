// SPDX-License-Identifier: Apache-2.0
// An error document of S3, of STS, or of Google's XML API. Pure; untrusted input.
#pragma once

#include <string>
#include <string_view>

namespace muster::initializers {

struct XmlError {
  std::string code;      // "NoSuchBucket"; empty: the body is not an error document
  std::string message;   // may be empty; one line, at most 1024 bytes
  std::string region;    // the region that the request must be signed for; fit for a host name
  std::string endpoint;  // host, maybe with a port, of the bucket
  bool operator==(const XmlError&) const = default;
};
// Never fails: any other text gives an XmlError without a code.
XmlError ParseXmlError(std::string_view xml);

}  // namespace muster::initializers
