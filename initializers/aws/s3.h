// SPDX-License-Identifier: Apache-2.0
// Amazon S3 and other servers with its API: ListObjectsV2, HEAD, ranged GET, all signed. The ETag fixes the version.
//
// An s3:// URI with a trailing '/', or without a key, is a prefix. Else the exact key is looked for first, then "key/"
// as a prefix; never the bare key, which would bring a/bc for a/b.
// The region is learnt from the first answer that names it; the server's Date corrects a wrong local clock. For users:
// docs/initializers.md, "Where files are stored" and "S3".
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "http/conversation.h"
#include "initializers/aws/settings.h"
#include "initializers/aws/sigv4.h"
#include "initializers/facts/provider.h"
#include "initializers/facts/source.h"

namespace muster::initializers {

// Keys for the next request; nullopt: anonymous. Call it for each request: it renews keys that are about to expire.
class AwsKeySource {
 public:
  virtual ~AwsKeySource() = default;
  virtual boost::asio::awaitable<StatusOr<std::optional<AwsKeys>>> Get() = 0;
  // The number of the keys that were returned last; it grows with each renewal.
  virtual int number() const = 0;
  // Reports that the server called the keys with that number expired. If newer keys exist already (the answer was still
  // on its way), they are not renewed. False: no other keys can be had.
  virtual bool Expired(int number) = 0;
  // The keys that Get() would return at once; nullopt: Get() would have to wait.
  virtual std::optional<std::optional<AwsKeys>> AtHand() = 0;
};

struct S3Settings {
  S3Place place;
  std::string version_id;  // of a single object; empty: the newest
};

std::unique_ptr<Provider> MakeS3(boost::asio::io_context& loop, http::Persistence persistence, const Source& source,
                                 S3Settings settings, std::unique_ptr<AwsKeySource> keys);

}  // namespace muster::initializers
