// What an S3 server and STS say in XML: pages of ListObjectsV2, temporary credentials. Pure; outside bytes.
//
// Read by xml_elements.h: bounded, without DTDs. What their headers say of an object's content is s3_checksums.h's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "http/client.h"

namespace muster::initializers {

struct S3Object {
  std::string key;
  uint64_t size = 0;
  std::string
      etag;  // with its quotes, as If-Match wants it, also where the server left them out; empty: none was given
  std::string storage_class;
  bool operator==(const S3Object&) const = default;
};

struct S3Page {
  std::vector<S3Object> objects;
  std::optional<std::string> next;  // continuation token; none: it was the last page
  bool operator==(const S3Page&) const = default;
};

// A page. Keys are percent-decoded where the answer says EncodingType url (a '+' is a space then). InvalidArgument: it
// is no ListBucketResult (a login page, cut XML, an error), an object lacks a key or a size, a size is no number, it
// says that there is more without saying where.
StatusOr<S3Page> ParseS3Page(std::string_view xml);

// Temporary credentials of an STS answer (AssumeRole, AssumeRoleWithWebIdentity).
struct StsCredentials {
  std::string access_key, secret_key, session_token;
  int64_t expires_unix = 0;  // seconds
};
// InvalidArgument: one of the four is missing, or could not stand in a header. No message shows them.
StatusOr<StsCredentials> ParseStsAnswer(std::string_view xml);

// Why a 200 or 206 for the object `key` is not the store's own, but a page of somebody in between: a login, or one
// index.html for everything. Nothing: it is the store's.
std::optional<std::string> PageInPlace(const http::ResponseHead& head, std::string_view key);

}  // namespace muster::initializers
