// What Google Cloud Storage's JSON API answers, read: pages of objects, one object, errors. Pure; outside bytes. Sizes
// and generations are strings there; crc32c and md5Hash base64.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "http/client.h"
#include "initializers/provider.h"

namespace muster::initializers {

struct GcsPage {
  std::vector<Entry> entries;  // key: the object's name; path: empty, the provider's to fill; version: the generation
  std::string next;            // nextPageToken; empty: the last page
};
// Expectation: crc32c, which every object has and whose ranges combine; else md5Hash. A name with '/' at its end and no
// bytes is a folder marker, size 0. An object that is stored with contentEncoding gzip is brought in as it is stored.
// InvalidArgument names what is wrong and which object: also JSON that is neither, and a page of HTML.
StatusOr<GcsPage> ParseObjects(std::string_view json);
StatusOr<Entry> ParseObject(std::string_view json);

// What an answer that is no success means: {"error":{code,message,errors:[{reason}]}}, also text or XML from the media
// path. 403 rateLimitExceeded/userRateLimitExceeded and 429 throttled, 408 and 5xx transient, 412 changed, other
// 401/403/404 fatal with the remedy: that a token may only have expired, or that a generation was pinned, is the
// caller's to know. `what`: "gs://bucket/object".
http::Refusal RefusalOfGcs(const http::ResponseHead& head, std::string_view body, std::string_view what,
                           int64_t unix_now);

// What is wrong with the head of an answer with media, which is to be `length` bytes of generation `version`; nothing:
// they follow, as they are stored. Whether it is the range that was asked for is answer_checks.h's RangeProblem.
std::optional<std::string> MediaProblem(const http::ResponseHead& head, uint64_t length, const std::string& version);

// The server's own headers are there, so that it is an answer of the store for that object of `size` bytes, but
// somebody on the way has changed its encoding. Asking again would give the same.
enum class Recoding { kDecoded, kEncoded };
std::optional<Recoding> FindRecoding(const http::ResponseHead& head, uint64_t size);

}  // namespace muster::initializers
