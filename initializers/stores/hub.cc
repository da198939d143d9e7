// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/hub.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <span>

#include "base/quoted.h"
#include "base/text.h"
#include "http/cloud_clock.h"
#include "http/endpoint_url.h"
#include "http/percent.h"
#include "initializers/disk/disk_pool.h"
#include "initializers/stores/answer_checks.h"
#include "initializers/stores/hub_answers.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

constexpr size_t kLongestRevision = size_t{32} << 20;  // bytes; the answer also names all files of the repository
constexpr size_t kLongestPage = size_t{8} << 20;       // bytes of a page of 1,000 files
constexpr size_t kMostPlaces = 64;  // places that are remembered: more than there are concurrent requests
constexpr int kRemembered = 1;      // mark of requests that go to a remembered place
constexpr char kDefaultHub[] = "https://huggingface.co";

// Statuses of a tree request that are answers besides 200: no such folder; no such API.
constexpr int kNoFolder[] = {400, 404};
constexpr int kNoApi[] = {404, 405, 501};

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

std::string_view PluralOf(RepoType type) {
  switch (type) {
    case RepoType::kModel:
      return "models";
    case RepoType::kDataset:
      return "datasets";
    case RepoType::kSpace:
      return "spaces";
  }
  return "models";
}

bool IsBelow(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

bool IsWhole(const http::ResponseHead& head, const Entry& entry) {
  return head.status == 200 && head.ContentLength() == entry.size;
}

class Hub final : public Provider {
 public:
  Hub(asio::io_context& loop, http::Persistence persistence, const Source& source, HubSettings settings)
      : loop_(loop),
        persistence_(std::move(persistence)),
        source_(source),
        settings_(std::move(settings)),
        origin_(http::OriginOf(settings_.endpoint).value_or("")),
        id_(source.container) {}

  Handle List(Listing listing) override { return http::Converse(loop_, ListAll(std::move(listing))); }
  Handle Look(const Entry& entry, std::function<void(StatusOr<Entry>)> looked) override {
    looked(entry);  // the list has everything, and the files of a commit never change
    return nullptr;
  }
  Handle Prepare(const Entry& entry, ByteRange range, std::function<void(StatusOr<http::Request>)> ready) override;
  Reception Receive(const Entry& entry, ByteRange range, const http::ResponseHead& head) override;
  http::Refusal Explain(const Entry& entry, const http::ResponseHead& head, std::string_view body) override;
  bool GivesRanges() const override { return gives_ranges_; }

  std::string endpoint() const override { return settings_.endpoint; }
  std::string version() const override { return commit_; }

 private:
  // The place to which the hub redirected a file: elsewhere on the hub, or at a CDN.
  struct Place {
    std::string key, url;
  };
  // Requests of one kind wait until then: the hub counts API requests and file requests separately.
  struct Quota {
    TimePoint until{};
  };
  using ReadBody = std::function<Status(std::string_view body)>;

  asio::awaitable<void> ListAll(Listing listing);
  asio::awaitable<Status> ListCommit(Listing& listing);
  asio::awaitable<Status> FindCommit();
  asio::awaitable<StatusOr<bool>> ListFolder(std::string folder, bool recursive, Listing& listing);
  asio::awaitable<StatusOr<bool>> ListSiblings(Listing& listing);
  bool GiveWanted(std::vector<Entry> page, Listing& listing);
  asio::awaitable<StatusOr<http::Answer>> AskApi(std::string url, size_t limit, std::span<const int> also,
                                                 ReadBody read);
  asio::awaitable<void> PrepareLater(std::string key, ByteRange range,
                                     std::function<void(StatusOr<http::Request>)> ready);
  asio::awaitable<void> Await(const Quota& quota);

  http::Request RequestFor(const std::string& key, ByteRange range) const;
  http::Request RequestTo(const std::string& url) const;  // with the token if the URL is on the hub
  bool IsHub(std::string_view url) const { return http::OriginOf(url) == origin_; }
  void Note(const http::ResponseHead& head, Quota* quota) const;
  const Place* PlaceOf(const std::string& key) const;
  void Remember(const std::string& key, std::string url);
  void Forget(const std::string& key);
  bool Renamed(const std::string& url);
  std::string Api(std::string_view id) const {
    return fmt::format("{}/api/{}/{}", settings_.endpoint, PluralOf(source_.repo_type), id);
  }
  std::string FileUrl(const std::string& key) const;
  std::string Where(const std::string& key) const {
    return fmt::format("hf://{}/{}@{}/{}", PluralOf(source_.repo_type), source_.container, settings_.revision, key);
  }

  asio::io_context& loop_;
  const http::Persistence persistence_;
  const Source source_;
  const HubSettings settings_;
  const std::string origin_;  // only requests to it carry the token
  std::string id_;            // "namespace/name": the repository's current name
  std::string commit_;
  Quota api_, files_;
  std::deque<Place> places_;
  bool has_tree_ = true;      // false: a mirror without that API
  bool gives_ranges_ = true;  // false: a mirror or its CDN sends only whole files
};

// --- requests

std::string Hub::FileUrl(const std::string& key) const {
  const std::string type = source_.repo_type == RepoType::kModel ? "" : fmt::format("{}/", PluralOf(source_.repo_type));
  return fmt::format("{}/{}{}/resolve/{}/{}", settings_.endpoint, type, id_, commit_, http::PercentEncode(key, "/"));
}

http::Request Hub::RequestTo(const std::string& url) const {
  http::Request request;
  request.url = url;
  request.headers.emplace_back("Accept-Encoding", "identity");
  if (settings_.token && IsHub(url)) {
    request.headers.emplace_back("Authorization", fmt::format("Bearer {}", *settings_.token));
  }
  return request;
}

http::Request Hub::RequestFor(const std::string& key, ByteRange range) const {
  const Place* place = PlaceOf(key);
  http::Request request = RequestTo(place != nullptr ? place->url : FileUrl(key));
  request.mark = place != nullptr ? kRemembered : 0;
  request.headers.emplace_back("Range", fmt::format("bytes={}-{}", range.offset, range.end() - 1));
  return request;
}

const Hub::Place* Hub::PlaceOf(const std::string& key) const {
  auto found = std::find_if(places_.begin(), places_.end(), [&key](const Place& place) { return place.key == key; });
  return found == places_.end() ? nullptr : &*found;
}

void Hub::Remember(const std::string& key, std::string url) {
  Forget(key);
  if (places_.size() == kMostPlaces) places_.pop_front();  // the next request for that file goes to the hub again
  places_.push_back({key, std::move(url)});
}

void Hub::Forget(const std::string& key) {
  std::erase_if(places_, [&key](const Place& place) { return place.key == key; });
}

// Makes the next requests wait if the quota is used up, before the hub answers 429.
void Hub::Note(const http::ResponseHead& head, Quota* quota) const {
  const auto limit = head.Find("ratelimit");
  const auto pause = limit ? http::ParseRateLimit(*limit) : std::nullopt;
  if (!pause) return;
  const Duration bounded = std::min(*pause, persistence_.retry.longest_asked);
  const TimePoint until = MonotonicClock::now() + bounded;
  if (until <= quota->until) return;
  if (quota->until <= MonotonicClock::now()) {
    persistence_.say(fmt::format("the hub's rate limit is used up; going on in {} s{}",
                                 std::chrono::ceil<std::chrono::seconds>(bounded).count(),
                                 settings_.token ? "" : " (it is higher with a token: HF_TOKEN)"));
  }
  quota->until = until;
}

asio::awaitable<void> Hub::Await(const Quota& quota) {
  asio::steady_timer pause(co_await asio::this_coro::executor);
  while (MonotonicClock::now() < quota.until) {
    pause.expires_at(quota.until);
    co_await pause.async_wait(asio::use_awaitable);
  }
}

// --- bytes

Provider::Handle Hub::Prepare(const Entry& entry, ByteRange range, std::function<void(StatusOr<http::Request>)> ready) {
  const Place* place = PlaceOf(entry.key);
  const bool counted = place == nullptr || IsHub(place->url);
  if (counted && MonotonicClock::now() < files_.until) {
    return http::Converse(loop_, PrepareLater(entry.key, range, std::move(ready)));
  }
  ready(RequestFor(entry.key, range));
  return nullptr;
}

asio::awaitable<void> Hub::PrepareLater(std::string key, ByteRange range,
                                        std::function<void(StatusOr<http::Request>)> ready) {
  co_await Await(files_);
  ready(RequestFor(key, range));
}

Reception Hub::Receive(const Entry& entry, ByteRange range, const http::ResponseHead& head) {
  const bool hub = IsHub(head.url);
  if (hub) Note(head, &files_);
  const bool whole = range.offset == 0 && range.length == entry.size;
  if (IsRedirect(head.status)) {
    const auto location = head.Find("location");
    if (!location) return {};
    std::string url = http::ResolveUrl(head.url, *location);
    if (IsHub(url)) {
      Remember(entry.key, std::move(url));
      return {Reception::Kind::kElsewhere, "", {}};
    }
    if (!whole || entry.size > kBlockBytes) Remember(entry.key, url);
    return {Reception::Kind::kElsewhere, std::move(url), {}};
  }
  if (!whole && IsWhole(head, entry)) gives_ranges_ = false;
  if (RangeProblem(head, range, entry.size)) return {};
  if (whole) Forget(entry.key);  // the file needs no further request
  return {Reception::Kind::kBytes, "", {}};
}

http::Refusal Hub::Explain(const Entry& entry, const http::ResponseHead& head, std::string_view body) {
  const std::string where = Where(entry.key);
  if (entry.ranges && IsWhole(head, entry)) {
    return {http::Refusal::Kind::kWholeOnly,
            absl::UnavailableError(fmt::format("{} gives whole files only", http::WithoutQuery(head.url))),
            {}};
  }
  if (IsHub(head.url)) {
    // The remembered place may be invalid: the next try starts at the hub's own URL.
    if (head.status != 429) Forget(entry.key);
    if (head.status / 100 != 2) return RefusalOfHub(head, body, where, settings_.token.has_value(), UnixSeconds());
    return WrongRange(where, head.status);
  }
  const std::string at = fmt::format("{}: {} from {}", where, head.status, http::WithoutQuery(head.url));
  const auto pause = http::AskedBy(head, UnixSeconds());
  const int status = head.status;
  // 400 for an expired link: S3 if the link has a token, Google's store always. A link just given has not expired.
  const bool gone = head.mark == kRemembered && (status == 400 || status == 404 || status == 410);
  if (status == 401 || status == 403 || gone) {
    const Place* place = PlaceOf(entry.key);
    if (place != nullptr && place->url == head.url) Forget(entry.key);
    return {
        http::Refusal::Kind::kTransient,
        absl::UnavailableError(fmt::format(
            "{}: the link has expired, or a proxy (HTTPS_PROXY, NO_PROXY) refuses it; asking the hub for a new link",
            at)),
        Duration::zero()};
  }
  if (status == 429 || status == 503) return {http::Refusal::Kind::kThrottled, absl::UnavailableError(at), pause};
  if (status == 408 || status >= 500) return {http::Refusal::Kind::kTransient, absl::UnavailableError(at), pause};
  if (status / 100 == 2) {
    return {http::Refusal::Kind::kTransient,
            absl::UnavailableError(fmt::format("{}: the answer is not the requested range", at)),
            {}};
  }
  return {http::Refusal::Kind::kFatal,
          absl::FailedPreconditionError(fmt::format("{}: {}", at, Quoted(Strip(body.substr(0, kMostQuoted))))),
          {}};
}

// --- the list

// Takes a renamed repository's new name from the URL of an API redirect, for all later requests. False: none.
bool Hub::Renamed(const std::string& url) {
  const std::string start = Api("");
  if (!url.starts_with(start)) return false;
  const std::string_view rest = std::string_view(url).substr(start.size());
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string id(rest.substr(0, std::min(rest.find('/', slash + 1), rest.size())));
  if (id == id_) return false;
  persistence_.say(fmt::format("{} is called {} on the hub now", source_.container, Quoted(id)));
  id_ = id;
  return true;
}

// Repeats the request until the answer is a 200 whose body `read` accepts, or has one of the statuses `also`.
asio::awaitable<StatusOr<http::Answer>> Hub::AskApi(std::string url, size_t limit, std::span<const int> also,
                                                    ReadBody read) {
  for (int redirects = 0; redirects <= kMostRedirects; ++redirects) {
    auto prepare = [this, &url]() -> asio::awaitable<StatusOr<http::Request>> {
      co_await Await(api_);
      co_return RequestTo(url);
    };
    auto judge = [this, &read, also](const http::Answer& answer) -> std::optional<http::Refusal> {
      const int status = answer.head.status;
      Note(answer.head, &api_);
      const std::string code(answer.head.Find("x-error-code").value_or(""));
      const bool about_path = code.empty() || code == "EntryNotFound";
      if (about_path && std::count(also.begin(), also.end(), status) > 0) return std::nullopt;
      if (IsRedirect(status) && answer.head.Find("location")) return std::nullopt;
      if (status != 200) {
        return RefusalOfHub(answer.head, answer.body, source_.uri, settings_.token.has_value(), UnixSeconds());
      }
      // A body that is not from the hub (a login page) is a failure like any other: the request is repeated.
      Status content = read(answer.body);
      if (content.ok()) return std::nullopt;
      return http::Refusal{
          http::Refusal::Kind::kTransient,
          absl::UnavailableError(fmt::format("{}: {}", http::WithoutQuery(answer.head.url), Message(content))),
          {}};
    };
    auto answer = co_await http::AskedUntilAnswered(persistence_, limit, prepare, judge);
    if (!answer.ok() || !IsRedirect(answer->head.status)) co_return answer;
    std::string next = http::ResolveUrl(url, *answer->head.Find("location"));
    if (!IsHub(next)) {
      co_return absl::FailedPreconditionError(
          fmt::format("{}: {} leads to {}, which is not the hub; check the endpoint (HF_ENDPOINT) and the proxy",
                      source_.uri, http::WithoutQuery(url), Quoted(http::WithoutQuery(next))));
    }
    (void)Renamed(next);
    url = std::move(next);
  }
  co_return absl::FailedPreconditionError(fmt::format("{}: redirected more than {} times, last to {}", source_.uri,
                                                      kMostRedirects, http::WithoutQuery(url)));
}

asio::awaitable<Status> Hub::FindCommit() {
  if (IsCommit(settings_.revision)) {
    commit_ = settings_.revision;
    co_return absl::OkStatus();
  }
  ReadBody read = [this](std::string_view body) -> Status {
    MUSTER_ASSIGN_OR_RETURN(commit_, ParseRevision(body));
    return absl::OkStatus();
  };
  std::string url = fmt::format("{}/revision/{}", Api(id_), http::PercentEncode(settings_.revision));
  const std::span<const int> also;
  auto answer = co_await AskApi(std::move(url), kLongestRevision, also, std::move(read));
  co_return answer.status();
}

// Passes the wanted entries of the page to the listing. False: there were none.
bool Hub::GiveWanted(std::vector<Entry> page, Listing& listing) {
  std::string wanted = source_.path;
  if (wanted.ends_with('/')) wanted.pop_back();
  std::erase_if(page, [&](const Entry& entry) {
    const bool below = wanted.empty() || IsBelow(entry.key, wanted);
    return !below && (source_.folder || entry.key != wanted);
  });
  if (settings_.cache_layout) {
    for (Entry& entry : page) entry.path = fmt::format("snapshots/{}/{}", commit_, entry.key);
  }
  if (page.empty()) return false;
  listing.page(std::move(page));
  return true;
}

// Lists by the revision's own list of files, which mirrors without the tree API have as well.
asio::awaitable<StatusOr<bool>> Hub::ListSiblings(Listing& listing) {
  const ReadBody read = [](std::string_view) { return absl::OkStatus(); };
  const std::string url = fmt::format("{}/revision/{}?blobs=true", Api(id_), commit_);
  auto answer = co_await AskApi(url, kLongestRevision, {}, read);
  if (!answer.ok()) co_return answer.status();
  auto files = ParseSiblings(answer->body);
  if (!files.ok()) {
    co_return absl::FailedPreconditionError(
        fmt::format("{}: {} gives neither the tree of its files nor their sizes; use another endpoint "
                    "(HF_ENDPOINT): {}",
                    source_.uri, settings_.endpoint, Message(files.status())));
  }
  co_return GiveWanted(*std::move(files), listing);
}

// Lists the wanted files of `folder`, page by page. False: there is no such folder or API, or no wanted file in it.
asio::awaitable<StatusOr<bool>> Hub::ListFolder(std::string folder, bool recursive, Listing& listing) {
  std::string url = fmt::format("{}/tree/{}", Api(id_), commit_);
  if (!folder.empty()) url += fmt::format("/{}", http::PercentEncode(folder, "/"));
  url += fmt::format("?recursive={}&expand=false", recursive);
  const auto also = folder.empty() ? std::span<const int>(kNoApi) : std::span<const int>(kNoFolder);
  bool found = false;
  while (true) {
    std::vector<Entry> page;
    ReadBody read = [&page](std::string_view body) -> Status {
      MUSTER_ASSIGN_OR_RETURN(page, ParseTree(body));
      return absl::OkStatus();
    };
    auto answer = co_await AskApi(url, kLongestPage, also, std::move(read));
    if (!answer.ok()) co_return answer.status();
    if (answer->head.status != 200) {
      has_tree_ = answer->head.Find("x-error-code").has_value();  // the hub itself always sends this header
      co_return false;
    }
    if (GiveWanted(std::move(page), listing)) found = true;
    const auto link = answer->head.Find("link");
    auto next = link ? NextLink(*link) : std::nullopt;
    if (!next) co_return found;
    *next = http::ResolveUrl(url, *next);
    // A mirror may pass on the hub's own URL.
    if (!IsHub(*next) && http::OriginOf(*next) == kDefaultHub)
      *next = settings_.endpoint + next->substr(sizeof(kDefaultHub) - 1);
    if (*next == url) {
      co_return absl::DataLossError(fmt::format("listing {}: the hub gives the same page again", source_.uri));
    }
    url = *std::move(next);
  }
}

asio::awaitable<Status> Hub::ListCommit(Listing& listing) {
  Status status = co_await FindCommit();
  if (!status.ok()) co_return status;
  std::string path = source_.path;
  if (path.ends_with('/')) path.pop_back();
  auto found = co_await ListFolder(path, true, listing);
  if (found.ok() && !*found && !source_.folder) {  // the path may be a file
    const size_t slash = path.rfind('/');
    std::string folder;
    if (slash != std::string::npos) folder = path.substr(0, slash);
    found = co_await ListFolder(std::move(folder), false, listing);
  }
  if (found.ok() && !*found && !has_tree_) found = co_await ListSiblings(listing);
  if (!found.ok()) co_return found.status();
  if (!*found) {
    co_return absl::NotFoundError(path.empty() ? fmt::format("{}: there are no files in it", source_.uri)
                                               : fmt::format("{}: there is no {} at {} ({})", source_.uri, Quoted(path),
                                                             Quoted(settings_.revision), commit_));
  }
  if (settings_.cache_layout && settings_.revision != commit_) {
    Entry ref;
    ref.path = fmt::format("refs/{}", settings_.revision);
    ref.size = commit_.size();
    ref.version = commit_;
    ref.content = commit_;
    std::vector<Entry> refs;
    refs.push_back(std::move(ref));
    listing.page(std::move(refs));
  }
  co_return absl::OkStatus();
}

asio::awaitable<void> Hub::ListAll(Listing listing) {
  Status status = co_await ListCommit(listing);
  listing.end(status);
}

}  // namespace

std::unique_ptr<Provider> MakeHub(asio::io_context& loop, http::Persistence persistence, const Source& source,
                                  HubSettings settings) {
  return std::make_unique<Hub>(loop, std::move(persistence), source, std::move(settings));
}

std::string HubCacheFolder(const Source& source) {
  std::string folder(PluralOf(source.repo_type));
  for (std::string_view part : Split(source.container, '/')) folder += fmt::format("--{}", part);
  return folder;
}

}  // namespace muster::initializers
