// SPDX-License-Identifier: Apache-2.0
#include "initializers/aws/s3.h"

#include <algorithm>
#include <span>

#include "base/quoted.h"
#include "base/text.h"
#include "http/cloud_clock.h"
#include "http/date.h"
#include "http/percent.h"
#include "initializers/aws/s3_answers.h"
#include "initializers/aws/s3_checksums.h"
#include "initializers/stores/answer_checks.h"
#include "initializers/stores/key_listing.h"
#include "initializers/stores/xml_error.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

constexpr size_t kLongestPage = 4 << 20;  // bytes of a page of 1,000 keys of 1,024 bytes, encoded
constexpr char kFallbackRegion[] = "us-east-1";
constexpr char kCheckCredentials[] =
    "check the credentials, and that they may list and read it (AWS_ACCESS_KEY_ID, a role, or --anonymous for a public "
    "bucket)";

// Statuses that count as answers to a HEAD: of an object that must exist, of one that may not exist, of a part.
constexpr int kThere[] = {200};
constexpr int kThereOrNot[] = {200, 404, 403};
constexpr int kPartOrNot[] = {200, 206, 400, 404, 412, 501};

HeaderReader ReaderOf(const http::ResponseHead& head) {
  return [&head](std::string_view name) -> std::optional<std::string> {
    auto value = head.Find(name);
    return value ? std::optional<std::string>(*value) : std::nullopt;
  };
}

class S3 final : public Provider {
 public:
  S3(asio::io_context& loop, http::Persistence persistence, const Source& source, S3Settings settings,
     std::unique_ptr<AwsKeySource> keys)
      : loop_(loop),
        persistence_(std::move(persistence)),
        source_(source),
        settings_(std::move(settings)),
        keys_(std::move(keys)) {}

  Handle List(Listing listing) override { return http::Converse(loop_, ListAll(std::move(listing))); }
  Handle Look(const Entry& entry, std::function<void(StatusOr<Entry>)> looked) override {
    return http::Converse(loop_, LookAt(entry, std::move(looked)));
  }
  Handle Prepare(const Entry& entry, ByteRange range, std::function<void(StatusOr<http::Request>)> ready) override;
  Reception Receive(const Entry& entry, ByteRange range, const http::ResponseHead& head) override;
  http::Refusal Explain(const Entry& entry, const http::ResponseHead& head, std::string_view body) override;

  std::string endpoint() const override { return AddressOf(settings_.place, source_.container, "").origin; }
  std::string version() const override { return ""; }

 private:
  struct Wanted {
    std::string method = "GET";
    std::string key;
    http::QueryParameters query;
    HeaderList headers;
  };
  asio::awaitable<void> ListAll(Listing listing);
  asio::awaitable<StatusOr<KeyStore::Found>> Find();
  asio::awaitable<Status> NoSuchVersion();
  asio::awaitable<StatusOr<KeyPage>> Page(std::string prefix, std::string token);
  asio::awaitable<void> LookAt(Entry entry, std::function<void(StatusOr<Entry>)> looked);
  asio::awaitable<StatusOr<uint64_t>> Measure(Entry entry, uint64_t parts, bool each);
  asio::awaitable<StatusOr<uint64_t>> LengthOf(Entry entry, uint64_t part);
  asio::awaitable<void> PrepareSlowly(Wanted wanted, std::function<void(StatusOr<http::Request>)> ready);
  asio::awaitable<StatusOr<http::Answer>> Request(Wanted wanted, std::span<const int> content,
                                                  const Entry* known = nullptr);

  asio::awaitable<StatusOr<http::Request>> SignedInTime(
      const Wanted& wanted);  // waits for keys; `wanted` outlives the coroutine
  http::Request Signed(const Wanted& wanted, const std::optional<AwsKeys>& keys) const;
  Wanted BytesOf(const Entry& entry, ByteRange range) const;
  Wanted PageOf(const std::string& prefix, const std::string& token) const;
  // The refusal that an error answer means. May learn region, endpoint or clock; then another try is worth it.
  http::Refusal Judge(const http::ResponseHead& head, std::string_view body, const std::string& key);
  bool Learn(const http::ResponseHead& head, const XmlError& error);
  // For a refused HEAD, whose answer has no body with the reason. True: the clock of the signature may have been wrong,
  // or the keys had expired, and a better clock or new keys are there now.
  bool MaySignBetter(const http::ResponseHead& head, int64_t signed_by, bool* renewed);
  // Why a HEAD answer with 200 is not the object's; nullopt: it is, and has a size. `known`: the entry so far.
  std::optional<http::Refusal> NoObject(const http::ResponseHead& head, const std::string& key,
                                        const Entry* known) const;
  Entry EntryOf(const http::ResponseHead& head, std::string key, std::string path) const;
  std::string Where(const std::string& key) const { return fmt::format("s3://{}/{}", source_.container, key); }

  asio::io_context& loop_;
  const http::Persistence persistence_;
  const Source source_;
  S3Settings settings_;
  const std::unique_ptr<AwsKeySource> keys_;
  int learnt_ = 0;  // how often the region was corrected
};

http::Request S3::Signed(const Wanted& wanted, const std::optional<AwsKeys>& keys) const {
  const S3Address address = AddressOf(settings_.place, source_.container, wanted.key);
  http::Request request;
  request.method = wanted.method;
  request.mark = keys_->number();
  request.url = address.origin + address.path;
  if (!wanted.query.empty()) request.url += fmt::format("?{}", http::CanonicalQuery(wanted.query));
  request.headers = wanted.headers;
  if (settings_.place.requester_pays) request.headers.emplace_back("x-amz-request-payer", "requester");
  if (keys) {
    SigningRequest signing;
    signing.method = wanted.method;
    signing.host = address.host;
    signing.path = address.path;
    signing.query = wanted.query;
    for (const auto& header : request.headers) {
      if (header.first.starts_with("x-amz-")) signing.headers.push_back(header);
    }
    const std::string region = settings_.place.region.empty() ? kFallbackRegion : settings_.place.region;
    for (auto& header : Sign(signing, {region, "s3"}, *keys, persistence_.clock->Now())) {
      request.headers.push_back(std::move(header));
    }
  }
  request.headers.emplace_back("Accept-Encoding", "identity");
  return request;
}

S3::Wanted S3::BytesOf(const Entry& entry, ByteRange range) const {
  Wanted wanted;
  wanted.key = entry.key;
  if (!settings_.version_id.empty()) wanted.query.emplace_back("versionId", settings_.version_id);
  if (range.offset == 0 && range.length == entry.size) {
    wanted.headers.emplace_back("x-amz-checksum-mode", "ENABLED");  // the answer has the object's checksum
  } else {
    wanted.headers.emplace_back("Range", fmt::format("bytes={}-{}", range.offset, range.end() - 1));
  }
  if (!entry.version.empty()) wanted.headers.emplace_back("If-Match", entry.version);
  return wanted;
}

S3::Wanted S3::PageOf(const std::string& prefix, const std::string& token) const {
  Wanted wanted;
  wanted.query = {{"list-type", "2"}, {"prefix", prefix}, {"max-keys", "1000"}, {"encoding-type", "url"}};
  if (!token.empty()) wanted.query.emplace_back("continuation-token", token);
  return wanted;
}

Provider::Handle S3::Prepare(const Entry& entry, ByteRange range, std::function<void(StatusOr<http::Request>)> ready) {
  Wanted wanted = BytesOf(entry, range);
  if (auto keys = keys_->AtHand()) {
    ready(Signed(wanted, *keys));
    return nullptr;
  }
  return http::Converse(loop_, PrepareSlowly(std::move(wanted), std::move(ready)));
}

asio::awaitable<void> S3::PrepareSlowly(Wanted wanted, std::function<void(StatusOr<http::Request>)> ready) {
  ready(co_await SignedInTime(wanted));
}

asio::awaitable<StatusOr<http::Request>> S3::SignedInTime(const Wanted& wanted) {
  auto keys = co_await keys_->Get();
  if (!keys.ok()) co_return keys.status();
  co_return Signed(wanted, *keys);
}

Reception S3::Receive(const Entry& entry, ByteRange range, const http::ResponseHead& head) {
  if (RangeProblem(head, range, entry.size) || IsOtherVersion(head, "etag", entry.version)) return {};
  if (!entry.version.empty() && PageInPlace(head, entry.key)) return {};
  Reception reception{Reception::Kind::kBytes, "", {}};
  if (head.status == 200) reception.expected = ExpectationOf(ReaderOf(head), entry.version, entry.size, 0);
  return reception;
}

http::Refusal S3::Explain(const Entry& entry, const http::ResponseHead& head, std::string_view body) {
  // A server that ignores If-Match sends another ETag for another version. 416: the object has become shorter.
  const bool success = head.status / 100 == 2;
  const bool other = success && !PageInPlace(head, entry.key) && IsOtherVersion(head, "etag", entry.version);
  if (success && !other) {  // not the requested bytes
    return WrongRange(Where(entry.key), head.status);
  }
  if (other || head.status == 412 || head.status == 416 || (head.status == 404 && settings_.version_id.empty())) {
    // A Look will find whether the object was deleted.
    return {http::Refusal::Kind::kChanged, absl::AbortedError(fmt::format("{} has changed", Where(entry.key))), {}};
  }
  return Judge(head, body, entry.key);
}

// Learns the region and host of the bucket, or the server's time: the next request is signed with them.
bool S3::Learn(const http::ResponseHead& head, const XmlError& error) {
  if (error.code == "RequestTimeTooSkewed") {  // or the request was signed before another answer corrected the clock
    return http::HearClock(persistence_, head, endpoint()) || persistence_.clock->offset() != 0;
  }
  const bool wrong_region = head.status == 301 || head.status == 307 || error.code == "AuthorizationHeaderMalformed" ||
                            error.code == "IllegalLocationConstraintException" || error.code == "PermanentRedirect";
  std::string region(head.Find("x-amz-bucket-region").value_or(error.region));
  if (!(wrong_region || (head.status == 400 && !region.empty())) || region.empty()) return false;
  if (region == settings_.place.region || ++learnt_ > 3) return false;
  settings_.place.region = region;
  return true;
}

http::Refusal S3::Judge(const http::ResponseHead& head, std::string_view body, const std::string& key) {
  const XmlError error = ParseXmlError(body);
  const std::string what = fmt::format("{}: {}{}{}{}{}", Where(key), head.status, error.code.empty() ? "" : " ",
                                       error.code, error.message.empty() ? "" : ": ", error.message);
  if (Learn(head, error)) return {http::Refusal::Kind::kTransient, absl::UnavailableError(what), Duration::zero()};
  const std::optional<Duration> pause = http::AskedBy(head, UnixSeconds());
  const auto& code = error.code;
  if (code == "ExpiredToken" || code == "ExpiredTokenException" || code == "TokenRefreshRequired") {
    if (keys_->Expired(head.mark))
      return {http::Refusal::Kind::kTransient, absl::UnavailableError(what), Duration::zero()};
    return {http::Refusal::Kind::kFatal, absl::PermissionDeniedError(what + "; renew the credentials"), {}};
  }
  if (head.status == 429 || head.status == 503 || code == "SlowDown" || code.starts_with("Throttl")) {
    return {http::Refusal::Kind::kThrottled, absl::UnavailableError(what), pause};
  }
  if (head.status >= 500 || head.status == 408 || code == "RequestTimeout" || code == "InternalError") {
    return {http::Refusal::Kind::kTransient, absl::UnavailableError(what), pause};
  }
  if (code == "InvalidObjectState") {
    return {http::Refusal::Kind::kFatal,
            absl::FailedPreconditionError(what + "; it is archived: restore it first, or leave it out with --ignore"),
            {}};
  }
  if (head.status == 401 || head.status == 403) {
    return {
        http::Refusal::Kind::kFatal, absl::PermissionDeniedError(fmt::format("{}; {}", what, kCheckCredentials)), {}};
  }
  if (head.status == 404) {
    const bool bucket = code == "NoSuchBucket";
    return {http::Refusal::Kind::kFatal,
            absl::NotFoundError(
                fmt::format("{}; {}", what, bucket ? "check the bucket's name and the endpoint" : "check the key")),
            {}};
  }
  if (head.status / 100 == 3) {
    return {http::Refusal::Kind::kFatal,
            absl::FailedPreconditionError(fmt::format(
                "{}: the bucket is at another endpoint{}{}; set its region (AWS_REGION) or endpoint (AWS_ENDPOINT_URL)",
                what, error.endpoint.empty() ? "" : ": ", error.endpoint)),
            {}};
  }
  std::string remedy;  // 405: the version is a delete marker
  if (!settings_.version_id.empty()) remedy = fmt::format("; check --version-id {}", Quoted(settings_.version_id));
  return {http::Refusal::Kind::kFatal, absl::FailedPreconditionError(what + remedy), {}};
}

std::optional<http::Refusal> S3::NoObject(const http::ResponseHead& head, const std::string& key,
                                          const Entry* known) const {
  auto problem = PageInPlace(head, key);
  const auto size = head.ContentLength();
  if (!problem && !size) problem = "it has no Content-Length";
  if (!problem && known != nullptr && *head.Find("etag") == known->version && *size != known->size) {
    problem = fmt::format("it has {} bytes, and the object with its ETag has {}", *size, known->size);
  }
  if (!problem) return std::nullopt;
  return http::Refusal{http::Refusal::Kind::kTransient,
                       absl::UnavailableError(fmt::format(
                           "{}: the answer to HEAD ({}) does not describe the object, it may be of a login page: {}; "
                           "check the endpoint (AWS_ENDPOINT_URL) and the proxy (HTTPS_PROXY, NO_PROXY)",
                           Where(key), head.status, *problem)),
                       {}};
}

bool S3::MaySignBetter(const http::ResponseHead& head, int64_t signed_by, bool* renewed) {
  if (head.status != 400 && head.status != 403) return false;
  (void)http::HearClock(persistence_, head, endpoint());
  if (persistence_.clock->offset() != signed_by) return true;
  const bool expired = head.status == 400 && !head.Find("x-amz-bucket-region") && !std::exchange(*renewed, true);
  return expired && keys_->Expired(head.mark);
}

// `content`: statuses that count as answers. `known`: for NoObject.
asio::awaitable<StatusOr<http::Answer>> S3::Request(Wanted wanted, std::span<const int> content, const Entry* known) {
  int64_t signed_by = 0;  // offset of the clock at the signature
  bool renewed = false;
  auto prepare = [this, &wanted, &signed_by]() -> asio::awaitable<StatusOr<http::Request>> {
    auto request = co_await SignedInTime(wanted);
    signed_by = persistence_.clock->offset();
    co_return request;
  };
  auto judge = [&, this](const http::Answer& answer) -> std::optional<http::Refusal> {
    const bool head = wanted.method == "HEAD";
    if (head && MaySignBetter(answer.head, signed_by, &renewed)) {
      return http::Refusal{http::Refusal::Kind::kTransient,
                           absl::UnavailableError(fmt::format("{}: {}", Where(wanted.key), answer.head.status)),
                           Duration::zero()};
    }
    if (std::count(content.begin(), content.end(), answer.head.status) > 0) {
      return head && answer.head.status == 200 ? NoObject(answer.head, wanted.key, known) : std::nullopt;
    }
    return Judge(answer.head, answer.body, wanted.key);
  };
  co_return co_await http::AskedUntilAnswered(persistence_, kLongestPage, prepare, judge);
}

Entry S3::EntryOf(const http::ResponseHead& head, std::string key, std::string path) const {
  Entry entry;
  entry.key = std::move(key);
  entry.path = std::move(path);
  entry.size = *head.ContentLength();  // NoObject has checked that it exists
  entry.version = *head.Find("etag");
  entry.expected = ExpectationOf(ReaderOf(head), entry.version, entry.size, 0);
  return entry;
}

asio::awaitable<StatusOr<KeyStore::Found>> S3::Find() {
  Wanted wanted;
  wanted.method = "HEAD";
  wanted.key = source_.path;
  wanted.headers.emplace_back("x-amz-checksum-mode", "ENABLED");
  if (!settings_.version_id.empty()) wanted.query.emplace_back("versionId", settings_.version_id);
  auto answer = co_await Request(std::move(wanted), kThereOrNot);
  if (!answer.ok()) co_return answer.status();
  KeyStore::Found found;
  if (answer->head.status == 403) {
    found.denied = absl::PermissionDeniedError(fmt::format("{}: 403; {}", Where(source_.path), kCheckCredentials));
  } else if (answer->head.status == 200) {
    found.entry = EntryOf(answer->head, source_.path, "");
    found.entry->known = PartsToMeasure(ReaderOf(answer->head), found.entry->version) == 0;
  }
  if (!found.entry && !settings_.version_id.empty()) {  // a version id names a single object
    if (!found.denied.ok()) co_return found.denied;
    co_return co_await NoSuchVersion();
  }
  co_return found;
}

asio::awaitable<StatusOr<KeyPage>> S3::Page(std::string prefix, std::string token) {
  const Wanted wanted = PageOf(prefix, token);
  // An answer that is not a list (a login page) is a failure like any other: the request is repeated.
  StatusOr<S3Page> read = S3Page();
  auto prepare = [this, &wanted] { return SignedInTime(wanted); };
  auto judge = [this, &read](const http::Answer& answer) -> std::optional<http::Refusal> {
    if (answer.head.status != 200) return Judge(answer.head, answer.body, "");
    read = ParseS3Page(answer.body);
    if (read.ok()) return std::nullopt;
    return http::Refusal{http::Refusal::Kind::kTransient,
                         absl::UnavailableError(fmt::format("listing {}: {}", Where(""), Message(read.status()))),
                         {}};
  };
  auto answer = co_await http::AskedUntilAnswered(persistence_, kLongestPage, prepare, judge);
  if (!answer.ok()) co_return answer.status();
  KeyPage page;
  page.next = read->next.value_or("");
  for (S3Object& object : read->objects) {
    Entry& entry = page.entries.emplace_back();
    entry.key = std::move(object.key);
    entry.size = object.size;
    entry.version = std::move(object.etag);
    entry.known = false;
  }
  co_return page;
}

asio::awaitable<Status> S3::NoSuchVersion() {
  const auto below = co_await Page(source_.path + "/", "");
  if (below.ok() && !below->entries.empty()) {
    co_return absl::InvalidArgumentError(
        fmt::format("--version-id is of one object, and {} is a prefix; leave it out", source_.uri));
  }
  co_return absl::NotFoundError(fmt::format("{}: there is no object of the version {}; check key and --version-id",
                                            source_.uri, Quoted(settings_.version_id)));
}

asio::awaitable<void> S3::ListAll(Listing listing) {
  KeyStore store;
  store.find = [this] { return Find(); };
  store.page = [this](std::string prefix, std::string token) { return Page(std::move(prefix), std::move(token)); };
  const Status status = co_await ListKeys(source_, store, listing);
  listing.end(status);
}

asio::awaitable<void> S3::LookAt(Entry entry, std::function<void(StatusOr<Entry>)> looked) {
  Wanted wanted;
  wanted.method = "HEAD";
  wanted.key = entry.key;
  wanted.headers.emplace_back("x-amz-checksum-mode", "ENABLED");
  if (!settings_.version_id.empty()) wanted.query.emplace_back("versionId", settings_.version_id);
  auto answer = co_await Request(wanted, kThere, &entry);
  if (!answer.ok()) {
    looked(answer.status());
    co_return;
  }
  Entry now = EntryOf(answer->head, entry.key, entry.path);
  now.doubted = entry.doubted;
  if (const uint64_t parts = PartsToMeasure(ReaderOf(answer->head), now.version); parts > 0) {
    const auto part_size = co_await Measure(now, parts, entry.doubted);
    if (!part_size.ok()) {
      looked(part_size.status());
      co_return;
    }
    now.expected = ExpectationOf(ReaderOf(answer->head), now.version, now.size, *part_size);
  }
  looked(std::move(now));
}

// The length of each part but the last; `each`: asks for every part. 0: they differ, or the server does not say.
asio::awaitable<StatusOr<uint64_t>> S3::Measure(Entry entry, uint64_t parts, bool each) {
  const auto first = co_await LengthOf(entry, 1);
  if (!first.ok() || *first == 0) co_return first;
  const auto last = co_await LengthOf(entry, parts);
  if (!last.ok()) co_return last;
  const uint64_t size = PartSize(entry.size, parts, *first, *last);
  for (uint64_t part = 2; each && size != 0 && part < parts; ++part) {
    const auto length = co_await LengthOf(entry, part);
    if (!length.ok()) co_return length;
    if (*length != size) co_return 0;
  }
  co_return size;
}

// The length of a part; 0: unknown. Without If-Match, because some servers give a part an ETag of its own.
asio::awaitable<StatusOr<uint64_t>> S3::LengthOf(Entry entry, uint64_t part) {
  Wanted wanted;
  wanted.method = "HEAD";
  wanted.key = entry.key;
  wanted.query.emplace_back("partNumber", std::to_string(part));
  if (!settings_.version_id.empty()) wanted.query.emplace_back("versionId", settings_.version_id);
  auto answer = co_await Request(std::move(wanted), kPartOrNot);
  if (absl::IsUnavailable(answer.status()) || absl::IsDeadlineExceeded(answer.status())) co_return answer.status();
  const bool told = answer.ok() && answer->head.status / 100 == 2 && answer->head.Find("x-amz-mp-parts-count");
  co_return told ? answer->head.ContentLength().value_or(0) : 0;
}

}  // namespace

std::unique_ptr<Provider> MakeS3(asio::io_context& loop, http::Persistence persistence, const Source& source,
                                 S3Settings settings, std::unique_ptr<AwsKeySource> keys) {
  return std::make_unique<S3>(loop, std::move(persistence), source, std::move(settings), std::move(keys));
}

}  // namespace muster::initializers
