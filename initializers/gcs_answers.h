// What Google Cloud Storage's JSON API answers, read: pages of objects, one object, errors. Pure; outside bytes. Sizes
// and generations are strings there; crc32c and md5Hash base64. Reference: initializers.md 2.4.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "initializers/http.h"
#include "initializers/provider.h"

namespace muster::initializers {

struct GcsPage {
  std::vector<Entry> entries;  // key: the object's name; path: empty, the provider's to fill; version: the generation
  std::string next;            // nextPageToken; empty: the last page
};
// Expectation: crc32c, which every object has and whose ranges combine; else md5Hash. A name with '/' at its end and no
// bytes is a folder marker, size 0. An object that is stored with contentEncoding gzip is brought in as it is stored.
// InvalidArgument names what is wrong and which object.
StatusOr<GcsPage> ParseObjects(std::string_view json);
StatusOr<Entry> ParseObject(std::string_view json);

// What an answer that is no success means: {"error":{code,message,errors:[{reason}]}}, also text or XML from the media
// path. 401 transient once (`Expired`: the caller's), 403 rateLimitExceeded/userRateLimitExceeded and 429 throttled,
// 408 and 5xx transient, 412 and 404 with a generation changed, other 401/403/404 fatal with the remedy. `what`:
// "gs://bucket/object".
Refusal RefusalOfGcs(const HttpHead& head, std::string_view body, std::string_view what, int64_t unix_now);

}  // namespace muster::initializers
