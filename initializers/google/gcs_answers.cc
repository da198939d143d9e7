// SPDX-License-Identifier: Apache-2.0
#include "initializers/google/gcs_answers.h"

#include <algorithm>
#include <cctype>

#include "base/base64.h"
#include "base/json_fields.h"
#include "base/quoted.h"
#include "base/text.h"
#include "initializers/stores/xml_error.h"

namespace muster::initializers {
namespace {

constexpr size_t kLongestGeneration = 20;
constexpr size_t kLongestReason = 64;

Status Bad(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

// GCS writes numbers as strings, so that JavaScript's doubles do not round them. Some other servers write numbers.
std::string DigitsOf(const Json& object, const char* name) {
  const Json* found = FindField(object, name);
  if (found != nullptr && found->is_number_unsigned()) return std::to_string(found->get<uint64_t>());
  return TextField(object, name);
}

bool IsGeneration(std::string_view text) {
  return !text.empty() && text.size() <= kLongestGeneration &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

StatusOr<std::optional<Expectation>> HashOf(const Json& object, const char* name, HashKind kind) {
  const Json* found = FindField(object, name);
  if (found == nullptr) return std::nullopt;
  const std::string text = TextField(object, name);
  auto raw = FromBase64(text);
  if (!raw.ok() || raw->size() != HashBytes(kind)) {
    return Bad(fmt::format("{} is {}, which is not {} in base64", name, Quoted(text), HashName(kind)));
  }
  return Checkable({kind, *std::move(raw), 0});
}

StatusOr<Entry> EntryOf(const Json& object) {
  Entry entry;
  entry.key = TextField(object, "name");
  if (entry.key.empty()) return Bad("an object has no name");
  const std::string size = DigitsOf(object, "size");
  const auto bytes = ParseInt(size);
  if (!bytes || *bytes < 0) return Bad(fmt::format("the size of {} is {}", Quoted(entry.key), Quoted(size)));
  entry.size = static_cast<uint64_t>(*bytes);
  entry.version = DigitsOf(object, "generation");
  if (!IsGeneration(entry.version)) {
    return Bad(fmt::format("the generation of {} is {}", Quoted(entry.key), Quoted(entry.version)));
  }
  auto expected = HashOf(object, "crc32c", HashKind::kCrc32c);
  if (expected.ok() && !*expected) expected = HashOf(object, "md5Hash", HashKind::kMd5);
  if (!expected.ok()) return Annotate(expected.status(), Quoted(entry.key));
  entry.expected = *std::move(expected);
  return entry;
}

// An error that describes the answer that came instead of the wanted one.
Status NotThat(const Json& json, std::string_view text, std::string_view wanted) {
  const std::string_view start = Strip(text).substr(0, 1);
  if (json.is_discarded()) {
    const bool page = start == "<";
    return Bad(
        fmt::format("it is {}, not {}; check the endpoint", page ? "a page of HTML or XML" : "not JSON", wanted));
  }
  return Bad(fmt::format("it is other JSON, not {}; check the endpoint", wanted));
}

struct GcsError {
  std::string reason;   // "notFound", "NoSuchKey"; a word
  std::string message;  // unchanged; bounded when it is shown
};

std::string WordOf(std::string_view text) {
  const bool good = text.size() <= kLongestReason && std::all_of(text.begin(), text.end(), [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
                    });
  return good ? std::string(text) : "";
}

GcsError ErrorOf(std::string_view body) {
  const Json json = ReadJsonTop(body, kFieldLevels);
  if (const Json* error = FindField(json, "error")) {
    GcsError told{WordOf(TextField(*error, "status")), TextField(*error, "message")};
    const Json* details = FindField(*error, "errors");
    if (details != nullptr && details->is_array() && !details->empty()) {
      if (std::string reason = WordOf(TextField(details->front(), "reason")); !reason.empty()) told.reason = reason;
    }
    return told;
  }
  if (!json.is_discarded()) return {};
  // The media path sends some errors as XML documents like those of S3, or as a line of text.
  const std::string_view text = Strip(body);
  if (text.starts_with('<')) {
    XmlError error = ParseXmlError(body);
    return {WordOf(error.code), std::move(error.message)};
  }
  return {"", std::string(text)};
}

http::Refusal Fatal(Status status) { return {http::Refusal::Kind::kFatal, std::move(status), {}}; }

}  // namespace

StatusOr<GcsPage> ParseObjects(std::string_view text) {
  const Json json = ReadJsonTop(text, kFieldLevels);
  const Json* items = FindField(json, "items");
  const bool empty = items == nullptr && TextField(json, "kind") == "storage#objects";
  if (!json.is_object() || !(empty || (items != nullptr && items->is_array()))) {
    return Annotate(NotThat(json, text, "a list of objects"), "the list of objects cannot be read");
  }
  GcsPage page;
  page.next = TextField(json, "nextPageToken");
  if (items == nullptr) return page;
  page.entries.reserve(items->size());
  for (const Json& item : *items) {
    auto entry = EntryOf(item);
    if (!entry.ok()) return Annotate(entry.status(), "the list of objects cannot be read");
    page.entries.push_back(*std::move(entry));
  }
  return page;
}

StatusOr<Entry> ParseObject(std::string_view text) {
  const Json json = ReadJsonTop(text, kFieldLevels);
  if (!json.is_object() || FindField(json, "name") == nullptr) {
    return Annotate(NotThat(json, text, "an object's description"), "the description of the object cannot be read");
  }
  auto entry = EntryOf(json);
  if (!entry.ok()) return Annotate(entry.status(), "the description of the object cannot be read");
  return entry;
}

std::optional<Recoding> FindRecoding(const http::ResponseHead& head, uint64_t size) {
  auto stored_encoding = head.Find("x-goog-stored-content-encoding");
  auto stored_length = head.Find("x-goog-stored-content-length");
  if (head.status / 100 != 2 || !stored_encoding || !stored_length || *stored_length != std::to_string(size)) {
    return std::nullopt;
  }
  const std::string_view encoding = head.Find("content-encoding").value_or("identity");
  if (encoding == *stored_encoding) return std::nullopt;
  return encoding == "identity" ? Recoding::kDecoded : Recoding::kEncoded;
}

std::optional<std::string> MediaProblem(const http::ResponseHead& head, uint64_t length, const std::string& version) {
  auto generation = head.Find("x-goog-generation");
  if (generation && *generation != version) return fmt::format("generation {} in place of {}", *generation, version);
  auto encoding = head.Find("content-encoding");
  auto stored = head.Find("x-goog-stored-content-encoding");
  if (encoding && stored && *encoding != *stored) {
    return fmt::format("content encoding {} in place of {}", *encoding, *stored);
  }
  if (head.ContentLength() != length) {
    return fmt::format("content length {} in place of {}", head.Find("content-length").value_or("unknown"), length);
  }
  return std::nullopt;
}

http::Refusal RefusalOfGcs(const http::ResponseHead& head, std::string_view body, std::string_view what,
                           int64_t unix_now) {
  const GcsError error = ErrorOf(body);
  const int status = head.status;
  const std::string told =
      fmt::format("{}: {}{}{}{}{}", what, status, error.reason.empty() ? "" : " ", error.reason,
                  error.message.empty() ? "" : ": ", error.message.empty() ? std::string() : Quoted(error.message));
  const std::optional<Duration> pause = http::AskedBy(head, unix_now);
  const bool too_fast = error.reason == "rateLimitExceeded" || error.reason == "userRateLimitExceeded";
  if (status == 429 || (status == 403 && too_fast)) {
    return {http::Refusal::Kind::kThrottled, absl::UnavailableError(told), pause};
  }
  if (status == 408 || status >= 500) return {http::Refusal::Kind::kTransient, absl::UnavailableError(told), pause};
  if (status == 412) return {http::Refusal::Kind::kChanged, absl::AbortedError(told), {}};
  if (status == 401) {
    return Fatal(absl::PermissionDeniedError(told +
                                             "; name an identity that may read it (GOOGLE_APPLICATION_CREDENTIALS, or "
                                             "the pod's service account), or --anonymous for a public bucket"));
  }
  if (status == 403) {
    return Fatal(absl::PermissionDeniedError(
        told +
        "; grant the identity storage.objects.get and storage.objects.list there (the role Storage Object Viewer), or "
        "--anonymous for a public bucket"));
  }
  if (status == 404) {
    return Fatal(absl::NotFoundError(told + "; check the names of bucket and object, and the endpoint"));
  }
  if (status == 400 && (error.message.find("requester pays") != std::string::npos ||
                        error.reason == "UserProjectMissing" || error.reason == "userProjectMissing")) {
    return Fatal(
        absl::FailedPreconditionError(told + "; name the project that pays for it in GOOGLE_CLOUD_QUOTA_PROJECT"));
  }
  return Fatal(absl::FailedPreconditionError(told));
}

}  // namespace muster::initializers
