// Amazon S3 and what speaks its language: ListObjectsV2, HEAD, ranged GET, each signed, pinned by ETag.
//
// An s3:// URI with a '/' at its end, or no key, is a prefix. Else the exact key is looked for first, and "key/" as a
// prefix only where there is none: never the bare string as a prefix, which would pull a/bc for a/b.
// The region is learnt from the first answer that tells it; a clock that is off, from the server's Date.
// For users: docs/initializers.md, "What ends where" and "S3".
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "http/conversation.h"
#include "initializers/aws/settings.h"
#include "initializers/aws/sigv4.h"
#include "initializers/provider.h"
#include "initializers/source.h"

namespace muster::initializers {

// Keys for the next request: none for anonymous. Asked for each request; refreshes what is about to expire.
class AwsKeySource {
 public:
  virtual ~AwsKeySource() = default;
  virtual boost::asio::awaitable<StatusOr<std::optional<AwsKeys>>> Get() = 0;
  // Of the keys that were given last: grows with each renewal.
  virtual int number() const = 0;
  // The server says that keys of that number have expired: those that are younger hold, and are not renewed for an
  // answer to the old ones that was still on its way. False: there are no others to be had.
  virtual bool Expired(int number) = 0;
  // Get() would answer at once with these.
  virtual std::optional<std::optional<AwsKeys>> AtHand() = 0;
};

struct S3Settings {
  S3Place place;
  std::string version_id;  // of a single object; empty: the newest
};

std::unique_ptr<Provider> MakeS3(boost::asio::io_context& loop, http::Persistence persistence, const Source& source,
                                 S3Settings settings, std::unique_ptr<AwsKeySource> keys);

}  // namespace muster::initializers
