// SPDX-License-Identifier: Apache-2.0
// Parses the answers of Google Cloud Storage's JSON API: pages of objects, one object, errors. Pure; untrusted input.
// In that JSON sizes and generations are strings; crc32c and md5Hash are base64.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "http/client.h"
#include "initializers/facts/provider.h"

namespace muster::initializers {

struct GcsPage {
  std::vector<Entry> entries;  // key: the object's name; path: empty, the provider fills it; version: the generation
  std::string next;            // nextPageToken; empty: the last page
};
// The expectation is crc32c, which every object has and whose ranges combine; else md5Hash. A name with a trailing '/'
// and no bytes is a folder marker of size 0. An object with contentEncoding gzip is brought in its stored form.
// InvalidArgument names the fault and the object; also: other JSON, an HTML page.
StatusOr<GcsPage> ParseObjects(std::string_view json);
StatusOr<Entry> ParseObject(std::string_view json);

// The meaning of an error answer: {"error":{code,message,errors:[{reason}]}}, or text or XML from the media path. 403
// rateLimitExceeded/userRateLimitExceeded and 429: throttled. 408 and 5xx: transient. 412: changed. Other 401/403/404:
// fatal, with the remedy; the caller knows whether the token may have expired or a generation was given. `what`:
// "gs://bucket/object".
http::Refusal RefusalOfGcs(const http::ResponseHead& head, std::string_view body, std::string_view what,
                           int64_t unix_now);

// What is wrong with the head of a media answer, which must be `length` bytes of generation `version` in stored form;
// nullopt: the bytes follow. RangeProblem (answer_checks.h) checks whether it is the requested range.
std::optional<std::string> MediaProblem(const http::ResponseHead& head, uint64_t length, const std::string& version);

// How a proxy has changed the encoding of an answer that, by the store's own headers, is the object of `size` bytes;
// another try would give the same. Nullopt: unchanged, or no such answer.
enum class Recoding { kDecoded, kEncoded };
std::optional<Recoding> FindRecoding(const http::ResponseHead& head, uint64_t size);

}  // namespace muster::initializers
