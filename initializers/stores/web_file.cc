// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/web_file.h"

#include <boost/asio/io_context.hpp>

#include "base/base64.h"
#include "base/text.h"
#include "http/cloud_clock.h"
#include "http/endpoint_url.h"
#include "http/percent.h"
#include "initializers/disk/disk_pool.h"
#include "initializers/stores/answer_checks.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

const std::pair<std::string, std::string> kWantDigest{"Want-Repr-Digest", "sha-256=1"};
constexpr size_t kLongestAnswer = 1 << 16;  // bytes of the body of a redirect or a refusal

// The header that a version was read from.
std::string_view HeaderOf(std::string_view version) { return version.starts_with('"') ? "etag" : "last-modified"; }

// 403: the URL may be signed for GET only.
bool RefusesHead(int status) { return status == 403 || status == 405 || status == 501; }

// True if the place of a redirect is no longer valid: its signature has expired, or the file has moved.
bool RefusesPlace(int status) { return status == 401 || status == 403 || status == 404 || status == 410; }

// How a server is asked; if it refuses one way, the next is used. The body of `kWhole` is not read.
enum class Asking { kHead, kFirstByte, kWhole };

class WebFile final : public Provider {
 public:
  WebFile(asio::io_context& loop, http::Persistence persistence, const Source& source, bool allow_html)
      : loop_(loop),
        allow_html_(allow_html),
        persistence_(std::move(persistence)),
        uri_(source.uri),
        path_(http::WithoutQuery(source.path)),
        first_(fmt::format("{}://{}{}", source.tls ? "https" : "http", source.container, source.path)),
        url_(first_),
        expected_(source.expected) {}

  Handle List(Listing listing) override { return http::Converse(loop_, Find(std::move(listing))); }

  Handle Look(const Entry&, std::function<void(StatusOr<Entry>)> looked) override {
    Listing listing;
    auto found = std::make_shared<StatusOr<Entry>>(absl::NotFoundError(uri_));
    listing.page = [found](std::vector<Entry> entries) { *found = std::move(entries.front()); };
    listing.end = [found, looked = std::move(looked)](const Status& status) {
      looked(status.ok() ? std::move(*found) : StatusOr<Entry>(status));
    };
    return List(std::move(listing));
  }

  Handle Prepare(const Entry& entry, ByteRange range, std::function<void(StatusOr<http::Request>)> ready) override {
    http::Request request;
    request.url = url_;
    request.mark = places_;
    request.headers = {{"Accept-Encoding", "identity"}};
    if (!entry.expected) request.headers.push_back(kWantDigest);
    if (entry.ranges) {
      request.headers.emplace_back("Range", fmt::format("bytes={}-{}", range.offset, range.end() - 1));
    }
    if (entry.version.starts_with('"')) {
      request.headers.emplace_back("If-Match", entry.version);
    } else if (!entry.version.empty()) {
      request.headers.emplace_back("If-Unmodified-Since", entry.version);
    }
    ready(std::move(request));
    return nullptr;
  }

  Reception Receive(const Entry& entry, ByteRange range, const http::ResponseHead& head) override {
    if (auto next = LedTo(head); next.ok() && !next->empty()) {
      if (head.url == url_) url_ = *std::move(next);  // else another request has followed the redirect already
      return {Reception::Kind::kElsewhere, "", {}};
    }
    if (RangeProblem(head, range, entry.size) || IsPage(head) || IsOther(entry, head)) return {};
    return {Reception::Kind::kBytes, "", DigestOf(head, range.length == entry.size)};
  }

  http::Refusal Explain(const Entry& entry, const http::ResponseHead& head, std::string_view) override {
    // 416: the file has become shorter.
    if (head.status == 412 || head.status == 416 || IsOther(entry, head))
      return {http::Refusal::Kind::kChanged, absl::AbortedError(fmt::format("{} has changed", uri_)), {}};
    if (Status led = LedTo(head).status(); !led.ok()) return {http::Refusal::Kind::kFatal, std::move(led), {}};
    if (RefusesPlace(head.status) && head.url != first_ && IsForgotten(head)) {
      return {http::Refusal::Kind::kTransient,
              absl::UnavailableError(fmt::format("{}: {}: the redirect from {} has expired, asking for a new one",
                                                 http::WithoutQuery(head.url), head.status, uri_)),
              Duration::zero()};
    }
    if (head.status / 100 == 2 && head.url == url_) url_ = first_;  // maybe a temporary redirect to a login page
    return Judge(head, entry.size);
  }

  std::string endpoint() const override { return url_.substr(0, url_.find('/', url_.find("://") + 3)); }
  std::string version() const override { return ""; }

 private:
  bool IsOther(const Entry& entry, const http::ResponseHead& head) const {
    return head.status / 100 == 2 && !IsPage(head) && IsOtherVersion(head, HeaderOf(entry.version), entry.version);
  }
  bool IsPage(const http::ResponseHead& head) const { return !allow_html_ && IsPageInstead(head, path_, true); }
  // The target of a redirect; empty: the answer is none. FailedPrecondition: it is not allowed, or has no target.
  StatusOr<std::string> LedTo(const http::ResponseHead& head) const;
  // Forgets a redirect's place: the next request begins at first_. False: it has led to the same refusing place again.
  bool IsForgotten(const http::ResponseHead& head);
  asio::awaitable<void> Find(Listing listing);
  asio::awaitable<StatusOr<http::Answer>> AskedFor(std::string url, Asking* how);
  asio::awaitable<void> FindDigest(Entry& entry);
  StatusOr<Entry> EntryOf(const http::ResponseHead& head, Asking how) const;
  Status PageInstead() const;
  http::Refusal Judge(const http::ResponseHead& head, uint64_t size) const;

  asio::io_context& loop_;
  const bool allow_html_;
  const http::Persistence persistence_;
  const std::string uri_;    // for messages: without a signature in its query
  const std::string path_;   // of the URI
  const std::string first_;  // the URI with its whole query
  std::string url_;          // URL of the requests; after List the place of the redirect
  std::string refused_;      // the last place that was refused
  int places_ = 0;           // how often the place was forgotten: the mark of requests

  const std::optional<Expectation> expected_;  // by the URI; goes before the server's digest
};

// Sends the request in the way of `how`; if the server refuses that, tries the next way, and sets `how` to it.
asio::awaitable<StatusOr<http::Answer>> WebFile::AskedFor(std::string url, Asking* how) {
  bool again = false;
  auto prepare = [&]() -> asio::awaitable<StatusOr<http::Request>> {
    http::Request request;
    request.url = url;
    request.headers = {{"Accept-Encoding", "identity"}, kWantDigest};
    if (*how == Asking::kHead) request.method = "HEAD";
    if (*how == Asking::kFirstByte) request.headers.emplace_back("Range", "bytes=0-0");
    request.head_only = *how != Asking::kHead;
    co_return request;
  };
  auto judge = [&](const http::Answer& answer) -> std::optional<http::Refusal> {
    const int status = answer.head.status;
    again = false;
    if (status == 200 || status / 100 == 3) return std::nullopt;
    if (*how == Asking::kFirstByte && SizeOfPart(answer.head)) return std::nullopt;
    if (*how == Asking::kHead && RefusesHead(status)) {
      *how = Asking::kFirstByte;
      again = true;
    } else if (*how == Asking::kFirstByte && status == 416) {  // maybe an empty file
      *how = Asking::kWhole;
      again = true;
    }
    return again ? std::nullopt : std::optional<http::Refusal>(Judge(answer.head, 0));
  };
  StatusOr<http::Answer> answer = co_await http::AskedUntilAnswered(persistence_, kLongestAnswer, prepare, judge);
  while (answer.ok() && again) answer = co_await http::AskedUntilAnswered(persistence_, kLongestAnswer, prepare, judge);
  co_return answer;
}

StatusOr<std::string> WebFile::LedTo(const http::ResponseHead& head) const {
  if (head.status / 100 != 3) return "";
  const auto location = head.Find("location");
  if (!location) {
    return absl::FailedPreconditionError(
        fmt::format("{}: {}, a redirect without a Location", http::WithoutQuery(head.url), head.status));
  }
  std::string url = http::ResolveUrl(head.url, *location);
  if (Lower(head.url).starts_with("https:") && !Lower(url).starts_with("https:")) {
    return absl::FailedPreconditionError(
        fmt::format("{}: it leads from https to {}, where anybody on the way could change it; if that is meant, name "
                    "that URL itself",
                    uri_, http::WithoutQuery(url)));
  }
  return url;
}

bool WebFile::IsForgotten(const http::ResponseHead& head) {
  if (head.mark != places_) return true;  // the request was sent before the place was forgotten
  if (head.url == refused_) return false;
  refused_ = head.url;
  url_ = first_;
  ++places_;
  return true;
}

asio::awaitable<void> WebFile::Find(Listing listing) {
  std::string url = first_;
  Asking how = Asking::kHead;
  for (int redirects = 0; redirects <= kMostRedirects; ++redirects) {
    StatusOr<http::Answer> answer = co_await AskedFor(url, &how);
    if (!answer.ok()) {
      listing.end(answer.status());
      co_return;
    }
    if (answer->head.status / 100 != 3) {
      url_ = url;
      StatusOr<Entry> entry = EntryOf(answer->head, how);
      if (entry.ok() && !entry->expected && how == Asking::kHead && entry->size > kBlockBytes) {
        co_await FindDigest(*entry);
      }
      if (entry.ok()) listing.page({*entry});
      listing.end(entry.status());
      co_return;
    }
    StatusOr<std::string> next = LedTo(answer->head);
    if (!next.ok()) {
      listing.end(next.status());
      co_return;
    }
    url = *std::move(next);
  }
  listing.end(absl::FailedPreconditionError(
      fmt::format("{}: redirected more than {} times, last to {}", uri_, kMostRedirects, http::WithoutQuery(url))));
}

// Some servers send the digest only with GET. The digest of a large file is needed before its ranges are cut.
asio::awaitable<void> WebFile::FindDigest(Entry& entry) {
  Asking how = entry.ranges ? Asking::kFirstByte : Asking::kWhole;
  const StatusOr<http::Answer> answer = co_await AskedFor(url_, &how);
  // The transfer will report other faults.
  if (!answer.ok() || IsPage(answer->head) || IsOther(entry, answer->head)) co_return;
  entry.expected = DigestOf(answer->head, answer->head.status == 200);
}

Status WebFile::PageInstead() const {
  return absl::FailedPreconditionError(
      fmt::format("{}: the answer is a web page in place of {}: is it a login? The file must be public, or its URL "
                  "signed; if the page is what is wanted, say --allow-html",
                  http::WithoutQuery(url_), uri_));
}

StatusOr<Entry> WebFile::EntryOf(const http::ResponseHead& head, Asking how) const {
  Entry entry;
  entry.path = http::PercentDecode(path_.substr(path_.rfind('/') + 1));
  entry.key = uri_;
  if (entry.path.empty() || entry.path.find('/') != std::string::npos) {
    return absl::InvalidArgumentError(
        fmt::format("{} names no file: a folder of a web server cannot be listed; name a file in it", uri_));
  }
  if (IsPage(head)) return PageInstead();
  const bool part = head.status != 200;
  auto size = part ? SizeOfPart(head) : head.ContentLength();
  if (!size) {
    return absl::FailedPreconditionError(
        fmt::format("{}: the server does not send its length (Content-Length), so that a cut answer would pass for a "
                    "whole one; move the file to a server that sends it",
                    uri_));
  }
  entry.size = *size;
  auto etag = head.Find("etag");
  auto modified = head.Find("last-modified");
  if (etag && etag->starts_with('"')) {
    entry.version = *etag;
  } else if (modified) {
    entry.version = *modified;
  }
  auto accepts = head.Find("accept-ranges");
  const bool parts = part || (how == Asking::kHead && accepts && *accepts == "bytes");
  entry.ranges = parts && !entry.version.empty();
  entry.expected = expected_ ? expected_ : DigestOf(head, !part && how != Asking::kHead);
  return entry;
}

http::Refusal WebFile::Judge(const http::ResponseHead& head, uint64_t size) const {
  const std::string where(http::WithoutQuery(head.url));
  const std::optional<Duration> pause = http::AskedBy(head, UnixSeconds());
  const int status = head.status;
  if (status == 429 || status == 503) {
    return {http::Refusal::Kind::kThrottled, absl::UnavailableError(fmt::format("{}: {}", where, status)), pause};
  }
  if (status == 408 || status >= 500) {
    return {http::Refusal::Kind::kTransient, absl::UnavailableError(fmt::format("{}: {}", where, status)), pause};
  }
  if (status == 401 || status == 403) {
    return {http::Refusal::Kind::kFatal,
            absl::PermissionDeniedError(fmt::format(
                "{}: {}: access is denied; it must be public, or its URL signed and not expired", where, status)),
            {}};
  }
  if (status == 404 || status == 410) {
    return {http::Refusal::Kind::kFatal,
            absl::NotFoundError(fmt::format("{}: {}: there is no such file; check the URL", where, status)),
            {}};
  }
  if (status / 100 == 2 && IsPage(head)) {  // maybe from a proxy: the file was of another kind before
    return {http::Refusal::Kind::kTransient, absl::UnavailableError(std::string(Message(PageInstead()))), pause};
  }
  if (status / 100 == 2) {  // not the requested bytes
    return {http::Refusal::Kind::kTransient,
            absl::UnavailableError(fmt::format("{}: {} is not the requested range of {} bytes", where, status, size)),
            {}};
  }
  return {http::Refusal::Kind::kFatal,
          absl::FailedPreconditionError(
              fmt::format("{}: {}; the server does not give it to a plain GET: check the URL", where, status)),
          {}};
}

}  // namespace

std::optional<Expectation> ParseDigestHeader(std::string_view value) {
  for (const auto& [name, kind] : {std::pair("sha-256", HashKind::kSha256), std::pair("crc32c", HashKind::kCrc32c),
                                   std::pair("sha", HashKind::kSha1), std::pair("md5", HashKind::kMd5)}) {
    const std::string start = fmt::format("{}=:", name);
    for (size_t at = value.find(start); at != std::string_view::npos; at = value.find(start, at + 1)) {
      if (at > 0 && value[at - 1] != ',' && value[at - 1] != ' ') continue;
      const size_t begin = at + start.size();
      const size_t end = value.find(':', begin);
      if (end == std::string_view::npos) break;
      auto raw = FromBase64(value.substr(begin, end - begin));
      if (raw.ok() && raw->size() == HashBytes(kind)) return Expectation{kind, *raw, 0};
    }
  }
  return std::nullopt;
}

std::optional<Expectation> DigestOf(const http::ResponseHead& head, bool whole) {
  for (std::string_view name : {"repr-digest", "content-digest"}) {
    if (name == "content-digest" && !whole) break;
    const auto said = head.Find(name);
    const auto digest = said ? ParseDigestHeader(*said) : std::nullopt;
    auto expected = digest ? Checkable(*digest) : std::nullopt;
    if (expected) return expected;
  }
  return std::nullopt;
}

std::unique_ptr<Provider> MakeWebFile(asio::io_context& loop, http::Persistence persistence, const Source& source,
                                      bool allow_html) {
  return std::make_unique<WebFile>(loop, std::move(persistence), source, allow_html);
}

}  // namespace muster::initializers
