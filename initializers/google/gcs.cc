// SPDX-License-Identifier: Apache-2.0
#include "initializers/google/gcs.h"

#include <algorithm>
#include <utility>

#include "base/quoted.h"
#include "base/text.h"
#include "http/cloud_clock.h"
#include "http/endpoint_url.h"
#include "http/percent.h"
#include "initializers/google/gcs_answers.h"
#include "initializers/stores/answer_checks.h"
#include "initializers/stores/key_listing.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

constexpr size_t kLongestPage = 4 << 20;  // bytes of a page of 1,000 objects with names of 1,024 bytes
constexpr char kFields[] = "name,size,generation,crc32c,md5Hash";
constexpr std::string_view kApi = "/storage/v1";

// Numbers the bearer tokens, as marks of requests: a late 401 to an old token says nothing about the new one.
class TokenCount {
 public:
  static constexpr int kNone = 0;  // anonymous

  int current() const { return current_; }
  void Worked(int number) { worked_ = std::max(worked_, number); }
  // Call it if a request with token `number` got a 401. False: a new token would not help.
  bool MayRenew(int number) const {
    return number != kNone && (number != current_ || current_ == 1 || worked_ == current_);
  }
  // True: a new token must be requested.
  bool Expire(int number) {
    if (number != current_) return false;
    ++current_;
    return true;
  }

 private:
  int current_ = 1;
  int worked_ = 0;  // the last token that was accepted
};

class Gcs final : public Provider {
 public:
  Gcs(asio::io_context& loop, http::Persistence persistence, const Source& source, GcsSettings settings,
      std::unique_ptr<BearerSource> tokens)
      : loop_(loop),
        persistence_(std::move(persistence)),
        source_(source),
        settings_(std::move(settings)),
        tokens_(std::move(tokens)),
        bucket_(fmt::format("{}{}/b/{}/o", settings_.endpoint, kApi, http::PercentEncode(source.container))) {}

  Handle List(Listing listing) override { return http::Converse(loop_, ListAll(std::move(listing))); }
  Handle Look(const Entry& entry, std::function<void(StatusOr<Entry>)> looked) override {
    return http::Converse(loop_, LookAt(entry, std::move(looked)));
  }
  Handle Prepare(const Entry& entry, ByteRange range, std::function<void(StatusOr<http::Request>)> ready) override;
  Reception Receive(const Entry& entry, ByteRange range, const http::ResponseHead& head) override;
  http::Refusal Explain(const Entry& entry, const http::ResponseHead& head, std::string_view body) override;

  std::string endpoint() const override { return settings_.endpoint; }
  std::string version() const override { return ""; }

 private:
  asio::awaitable<void> ListAll(Listing listing);
  asio::awaitable<StatusOr<KeyStore::Found>> Find();
  asio::awaitable<StatusOr<KeyPage>> Page(std::string prefix, std::string token);
  asio::awaitable<void> LookAt(Entry entry, std::function<void(StatusOr<Entry>)> looked);
  asio::awaitable<void> PrepareSlowly(Entry entry, ByteRange range, std::function<void(StatusOr<http::Request>)> ready);
  // Requests metadata until `judge` accepts the answer; renews the token if the server says that it has expired.
  asio::awaitable<Status> Request(std::string url, std::string where, http::JudgeAnswer judge);

  std::string UrlOf(const std::string& object, http::QueryParameters query) const;
  http::Request BytesOf(const Entry& entry, ByteRange range, const std::optional<std::string>& token) const;
  http::Request Bearing(std::string url, const std::optional<std::string>& token) const;
  http::QueryParameters ObjectQuery() const;
  // Call it if a request with that token got a 401. True: try another token.
  bool Renewed(int number);
  std::string Where(const std::string& object) const { return fmt::format("gs://{}/{}", source_.container, object); }

  asio::io_context& loop_;
  const http::Persistence persistence_;
  const Source source_;
  const GcsSettings settings_;
  const std::unique_ptr<BearerSource> tokens_;
  const std::string bucket_;  // URL of the bucket's objects
  TokenCount count_;
};

http::Refusal TokenExpired(const std::string& where) {
  return {http::Refusal::Kind::kTransient, absl::UnavailableError(fmt::format("{}: the token is refused (401)", where)),
          Duration::zero()};
}

http::Refusal Recoded(const std::string& where, Recoding recoding, const http::ResponseHead& head) {
  const std::string encoding(
      head.Find(recoding == Recoding::kDecoded ? "x-goog-stored-content-encoding" : "content-encoding").value_or(""));
  return {http::Refusal::Kind::kFatal,
          absl::FailedPreconditionError(
              fmt::format("{}: the object was {} on the way ({}); have the proxy pass Accept-Encoding and "
                          "Content-Encoding unchanged, or bypass it (NO_PROXY)",
                          where, recoding == Recoding::kDecoded ? "decompressed" : "compressed", Quoted(encoding))),
          {}};
}

// Stores what was read; else returns the reason to ask again.
template <typename What>
std::optional<http::Refusal> Taken(StatusOr<What> what, const std::string& where, std::optional<What>* taken) {
  if (!what.ok()) {
    return http::Refusal{http::Refusal::Kind::kTransient,
                         absl::UnavailableError(fmt::format("{}: {}", where, Message(what.status()))),
                         {}};
  }
  *taken = *std::move(what);
  return std::nullopt;
}

http::Request Gcs::Bearing(std::string url, const std::optional<std::string>& token) const {
  http::Request request;
  request.url = std::move(url);
  request.mark = token ? count_.current() : TokenCount::kNone;
  if (token) request.headers.emplace_back("Authorization", fmt::format("Bearer {}", *token));
  return request;
}

std::string Gcs::UrlOf(const std::string& object, http::QueryParameters query) const {
  if (!settings_.user_project.empty()) query.emplace_back("userProject", settings_.user_project);
  std::string url = bucket_;
  if (!object.empty()) url += '/' + http::PercentEncode(object);
  return fmt::format("{}?{}", url, http::CanonicalQuery(query));
}

http::Request Gcs::BytesOf(const Entry& entry, ByteRange range, const std::optional<std::string>& token) const {
  http::QueryParameters query = {{"alt", "media"}, {"generation", entry.version}};
  http::Request request = Bearing(UrlOf(entry.key, std::move(query)), token);
  if (range.offset != 0 || range.length != entry.size) {
    request.headers.emplace_back("Range", fmt::format("bytes={}-{}", range.offset, range.end() - 1));
  }
  request.headers.emplace_back("Accept-Encoding", "gzip");  // brings the stored form
  return request;
}

Provider::Handle Gcs::Prepare(const Entry& entry, ByteRange range, std::function<void(StatusOr<http::Request>)> ready) {
  if (auto token = tokens_->AtHand()) {
    ready(BytesOf(entry, range, *token));
    return nullptr;
  }
  return http::Converse(loop_, PrepareSlowly(entry, range, std::move(ready)));
}

asio::awaitable<void> Gcs::PrepareSlowly(Entry entry, ByteRange range,
                                         std::function<void(StatusOr<http::Request>)> ready) {
  auto token = co_await tokens_->Get();
  if (token.ok()) {
    ready(BytesOf(entry, range, *token));
  } else {
    ready(token.status());
  }
}

bool Gcs::Renewed(int number) {
  if (!count_.MayRenew(number)) return false;
  if (count_.Expire(number)) tokens_->Expired();
  return true;
}

Reception Gcs::Receive(const Entry& entry, ByteRange range, const http::ResponseHead& head) {
  if (head.status != 401) count_.Worked(head.mark);
  if (RangeProblem(head, range, entry.size) || MediaProblem(head, range.length, entry.version)) return {};
  return {Reception::Kind::kBytes, "", {}};
}

http::Refusal Gcs::Explain(const Entry& entry, const http::ResponseHead& head, std::string_view body) {
  const std::string where = Where(entry.key);
  if (head.status == 401 && Renewed(head.mark)) return TokenExpired(where);
  if (auto recoding = FindRecoding(head, entry.size)) return Recoded(where, *recoding, head);
  auto generation = head.Find("x-goog-generation");
  const bool other = head.status / 100 == 2 && generation && *generation != entry.version;
  if (other || (head.status == 404 && settings_.generation.empty())) {
    // A Look will find whether the object was deleted.
    return {http::Refusal::Kind::kChanged, absl::AbortedError(fmt::format("{} has changed", where)), {}};
  }
  if (head.status / 100 == 2) {  // not the requested bytes
    return WrongRange(where, head.status);
  }
  return RefusalOfGcs(head, body, where, UnixSeconds());
}

asio::awaitable<Status> Gcs::Request(std::string url, std::string where, http::JudgeAnswer judge) {
  auto prepare = [this, &url]() -> asio::awaitable<StatusOr<http::Request>> {
    auto token = co_await tokens_->Get();
    if (!token.ok()) co_return token.status();
    co_return Bearing(url, *token);
  };
  auto judge_token = [this, &where, &judge](const http::Answer& answer) -> std::optional<http::Refusal> {
    if (answer.head.status != 401) {
      count_.Worked(answer.head.mark);
    } else if (Renewed(answer.head.mark)) {
      return TokenExpired(where);
    }
    return judge(answer);
  };
  auto answer = co_await http::AskedUntilAnswered(persistence_, kLongestPage, prepare, judge_token);
  co_return answer.status();
}

http::QueryParameters Gcs::ObjectQuery() const {
  http::QueryParameters query = {{"fields", kFields}};
  if (!settings_.generation.empty()) query.emplace_back("generation", settings_.generation);
  return query;
}

asio::awaitable<StatusOr<KeyStore::Found>> Gcs::Find() {
  const std::string where = Where(source_.path);
  KeyStore::Found found;
  auto judge = [&](const http::Answer& answer) -> std::optional<http::Refusal> {
    if (answer.head.status == 200) return Taken(ParseObject(answer.body), where, &found.entry);
    http::Refusal refusal = RefusalOfGcs(answer.head, answer.body, where, UnixSeconds());
    const bool fatal = refusal.kind == http::Refusal::Kind::kFatal;
    if (!fatal || (answer.head.status != 403 && answer.head.status != 404)) return refusal;
    if (answer.head.status == 403) found.denied = refusal.status;
    return std::nullopt;
  };
  Status status = co_await Request(UrlOf(source_.path, ObjectQuery()), where, judge);
  if (!status.ok()) co_return status;
  if (found.entry) {
    found.entry->key = source_.path;
  } else if (!settings_.generation.empty()) {  // a generation names a single object
    if (!found.denied.ok()) co_return found.denied;
    co_return absl::NotFoundError(
        fmt::format("{}: there is no object with the generation {}", source_.uri, settings_.generation));
  }
  co_return found;
}

asio::awaitable<StatusOr<KeyPage>> Gcs::Page(std::string prefix, std::string token) {
  const std::string where = Where(prefix);
  http::QueryParameters query;
  query.emplace_back("prefix", std::move(prefix));
  query.emplace_back("maxResults", "1000");
  query.emplace_back("fields", fmt::format("kind,items({}),nextPageToken", kFields));
  if (!token.empty()) query.emplace_back("pageToken", std::move(token));
  // An answer that is not a list (a login page) is a failure like any other: the request is repeated.
  std::optional<GcsPage> read;
  auto judge = [&](const http::Answer& answer) -> std::optional<http::Refusal> {
    if (answer.head.status == 200) return Taken(ParseObjects(answer.body), where, &read);
    return RefusalOfGcs(answer.head, answer.body, where, UnixSeconds());
  };
  Status status = co_await Request(UrlOf("", std::move(query)), where, judge);
  if (!status.ok()) co_return status;
  KeyPage page;
  page.entries = std::move(read->entries);
  page.next = std::move(read->next);
  co_return page;
}

asio::awaitable<void> Gcs::ListAll(Listing listing) {
  KeyStore store;
  store.find = [this] { return Find(); };
  store.page = [this](std::string prefix, std::string token) { return Page(std::move(prefix), std::move(token)); };
  const Status status = co_await ListKeys(source_, store, listing);
  listing.end(status);
}

asio::awaitable<void> Gcs::LookAt(Entry entry, std::function<void(StatusOr<Entry>)> looked) {
  const std::string where = Where(entry.key);
  std::optional<Entry> now;
  auto judge = [&](const http::Answer& answer) -> std::optional<http::Refusal> {
    if (answer.head.status == 200) return Taken(ParseObject(answer.body), where, &now);
    return RefusalOfGcs(answer.head, answer.body, where, UnixSeconds());
  };
  Status status = co_await Request(UrlOf(entry.key, ObjectQuery()), where, judge);
  if (!status.ok()) {
    looked(status);
    co_return;
  }
  now->path = entry.path;
  now->key = entry.key;
  looked(*std::move(now));
}

}  // namespace

StatusOr<GcsSettings> FindGcsSettings(const Environment& environment) {
  GcsSettings settings;
  settings.user_project = environment.NonBlank("GOOGLE_CLOUD_QUOTA_PROJECT").value_or("");
  for (const char* name : {"STORAGE_EMULATOR_HOST", "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE"}) {
    auto value = environment.NonBlank(name);
    if (!value) continue;
    if (value->find("://") == std::string::npos) value = fmt::format("http://{}", *value);
    auto url = http::ParseEndpointUrl(*value);
    if (!url.ok()) return Annotate(url.status(), name);
    // gcloud's variable ends with the path of the API.
    if (url->path.ends_with(kApi)) url->path.resize(url->path.size() - kApi.size());
    settings.endpoint = http::UrlText(*url);
    return settings;
  }
  return settings;
}

std::unique_ptr<Provider> MakeGcs(asio::io_context& loop, http::Persistence persistence, const Source& source,
                                  GcsSettings settings, std::unique_ptr<BearerSource> tokens) {
  return std::make_unique<Gcs>(loop, std::move(persistence), source, std::move(settings), std::move(tokens));
}

}  // namespace muster::initializers
