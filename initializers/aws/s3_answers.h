// SPDX-License-Identifier: Apache-2.0
// Parses the XML of S3 servers and STS: pages of ListObjectsV2, temporary credentials. Pure; untrusted input.
//
// xml_elements.h reads the XML: bounded, without DTDs. s3_checksums.h parses the headers about an object's content.
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
  std::optional<std::string> next;  // continuation token; nullopt: this is the last page
  bool operator==(const S3Page&) const = default;
};

// Parses a page. Keys are percent-decoded if the answer says EncodingType url (then a '+' is a space). InvalidArgument:
// the text is not a ListBucketResult (a login page, cut XML, an error); an object lacks a key or a size; a size is not
// a number; the page says that there is more but has no token.
StatusOr<S3Page> ParseS3Page(std::string_view xml);

// Temporary credentials of an STS answer (AssumeRole, AssumeRoleWithWebIdentity).
struct StsCredentials {
  std::string access_key, secret_key, session_token;
  int64_t expires_unix = 0;  // seconds
};
// InvalidArgument: one of the four fields is missing, or cannot stand in a header. No message shows them.
StatusOr<StsCredentials> ParseStsAnswer(std::string_view xml);

// The reason why a 200 or 206 for the object `key` is not from the store, but a page of a proxy: a login page, or one
// index.html for every path. Nullopt: it is from the store.
std::optional<std::string> PageInPlace(const http::ResponseHead& head, std::string_view key);

}  // namespace muster::initializers
