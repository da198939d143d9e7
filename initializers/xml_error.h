// An error as S3, STS and Google's XML API tell it. Pure; outside bytes.
#pragma once

#include <string>
#include <string_view>

namespace muster::initializers {

struct XmlError {
  std::string code;      // "NoSuchBucket"; empty where the body told nothing
  std::string message;   // may be empty; one line, at most 1024 bytes
  std::string region;    // that the request should have been signed for; fit for a host name
  std::string endpoint;  // host, maybe with a port: where the bucket is
  bool operator==(const XmlError&) const = default;
};
// Never fails: what is no error document (S3's or STS's) is an XmlError without a code.
XmlError ParseXmlError(std::string_view xml);

}  // namespace muster::initializers
