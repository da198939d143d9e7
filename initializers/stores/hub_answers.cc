// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/hub_answers.h"

#include <algorithm>
#include <limits>

#include "base/json_fields.h"
#include "base/quoted.h"
#include "base/text.h"
#include "http/endpoint_url.h"

namespace muster::initializers {
namespace {

constexpr size_t kCommitDigits = 40;
constexpr int kDeepestOfTree = 2;      // nesting that is kept: the list, its entries, their lfs
constexpr int kDeepestOfSiblings = 3;  // the same, inside a field of an object

Status Bad(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

StatusOr<Json> Read(std::string_view text, int deepest) {
  Json json = ReadJsonTop(text, deepest);
  if (json.is_discarded()) return Bad(fmt::format("it is not JSON: {}", Quoted(Strip(text), 60)));
  return json;
}

std::optional<uint64_t> Size(const Json& object) {
  const Json* found = FindField(object, "size");
  if (found == nullptr || !found->is_number_unsigned()) return std::nullopt;
  const auto size = found->get<uint64_t>();
  if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return size;
}

StatusOr<Expectation> Hash(const Json& object, const char* field, HashKind kind) {
  const std::string id = TextField(object, field);
  if (id.empty()) return Bad(fmt::format("it has no {}", field));
  auto raw = FromHex(id);
  if (!raw.ok() || raw->size() != HashBytes(kind)) {
    return Bad(fmt::format("its {} is {}, which is not a {}", field, Quoted(id),
                           kind == HashKind::kSha256 ? "SHA-256" : "git id"));
  }
  return Expectation{kind, *std::move(raw), 0};
}

// The names of a file's fields in one of the hub's lists.
struct FieldNames {
  const char* type;  // null: the list has only files
  const char *path, *git_id, *sha256;
};
constexpr FieldNames kOfTree{"type", "path", "oid", "oid"};
constexpr FieldNames kOfSiblings{nullptr, "rfilename", "blobId", "sha256"};

StatusOr<Entry> ReadFile(const Json& item, const FieldNames& names) {
  const std::string path = TextField(item, names.path);
  if (path.empty()) return Bad(fmt::format("it has no {}", names.path));
  auto named = [&path](std::string_view what) { return Bad(fmt::format("{}: {}", Quoted(path), what)); };
  const auto size = Size(item);
  if (!size) return named("it has no size");
  const Json* lfs = FindField(item, "lfs");
  if (lfs != nullptr && Size(*lfs) != size) return named("its size and that in lfs differ");
  auto hash =
      lfs != nullptr ? Hash(*lfs, names.sha256, HashKind::kSha256) : Hash(item, names.git_id, HashKind::kGitBlob);
  if (!hash.ok()) return named(Message(hash.status()));
  Entry entry;
  entry.path = entry.key = path;
  entry.size = *size;
  entry.version = ToHex(hash->value);
  entry.expected = Checkable(*std::move(hash));
  return entry;
}

StatusOr<std::vector<Entry>> ReadFiles(const Json& list, const FieldNames& names) {
  if (!list.is_array()) return Bad("it is not a JSON array");
  std::vector<Entry> entries;
  size_t number = 0;
  for (const Json& item : list) {
    auto numbered = [&number](const Status& status) { return Annotate(status, fmt::format("entry {}", number)); };
    ++number;
    if (names.type != nullptr) {
      const std::string type = TextField(item, names.type);
      if (type.empty()) return numbered(Bad("it has no type"));
      if (type != "file") continue;
    }
    auto entry = ReadFile(item, names);
    if (!entry.ok()) return numbered(entry.status());
    entries.push_back(*std::move(entry));
  }
  return entries;
}

// An error of the hub: the code is compared, the message is shown.
struct HubError {
  std::string code, message;
};
HubError ErrorOf(const http::ResponseHead& head, std::string_view body) {
  HubError error;
  error.code = head.Find("x-error-code").value_or("");
  error.message = head.Find("x-error-message").value_or("");
  if (error.message.empty()) error.message = TextField(ReadJsonTop(body, 0), "error");
  return error;
}

constexpr std::string_view kSetToken = "set HF_TOKEN (or ACCESS_TOKEN) to a token that may read it";

// For 401, 403 and 404. Without a token the hub also answers 401 for a repository that does not exist.
Status Denied(int status, const HubError& error, const std::string& what, bool with_token) {
  const auto& code = error.code;
  auto not_found = [&what](std::string_view remedy) {
    return absl::NotFoundError(fmt::format("{}; {}", what, remedy));
  };
  auto denied = [&what](std::string_view remedy) {
    return absl::PermissionDeniedError(fmt::format("{}; {}", what, remedy));
  };
  if (code == "GatedRepo") {
    return with_token ? denied("the repository is gated: ask for access on its page on the hub, as the token's user")
                      : denied(
                            "the repository is gated: ask for access on its page on the hub, then set HF_TOKEN (or "
                            "ACCESS_TOKEN)");
  }
  if (code == "RevisionNotFound") return not_found("check the revision: a branch, a tag or a commit");
  if (code == "EntryNotFound") return not_found("there is no such file at this revision");
  if (code == "RepoNotFound") {
    return not_found(with_token ? "check its name, whether it is a model or a data set (hf://models/..., "
                                  "hf://datasets/...), and that the token may read it"
                                : "check its name, and whether it is a model or a data set (hf://models/..., "
                                  "hf://datasets/...); if it is private, set HF_TOKEN (or ACCESS_TOKEN)");
  }
  if (status == 404) {
    return not_found("check its name, and the endpoint (HF_ENDPOINT): a mirror has to have the hub's API, too");
  }
  if (status == 401 && with_token) return denied("the hub refuses the token: renew it, or leave it out");
  return denied(with_token ? "check what the token may read" : kSetToken);
}

}  // namespace

bool IsCommit(std::string_view revision) {
  return revision.size() == kCommitDigits && revision.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

StatusOr<std::string> ParseRevision(std::string_view json) {
  auto document = Read(json, 0);
  if (!document.ok()) return Annotate(document.status(), "the hub's answer about the revision cannot be read");
  const std::string sha = TextField(*document, "sha");
  if (sha.empty()) return Bad("the hub's answer about the revision has no sha");
  if (!IsCommit(sha))
    return Bad(fmt::format("the hub's sha of the revision is {}, which is not a commit", Quoted(sha)));
  return sha;
}

StatusOr<std::vector<Entry>> ParseTree(std::string_view json) {
  constexpr std::string_view kWhat = "the hub's list of files cannot be read";
  auto document = Read(json, kDeepestOfTree);
  if (!document.ok()) return Annotate(document.status(), kWhat);
  auto entries = ReadFiles(*document, kOfTree);
  if (!entries.ok()) return Annotate(entries.status(), kWhat);
  return entries;
}

StatusOr<std::vector<Entry>> ParseSiblings(std::string_view json) {
  constexpr std::string_view kWhat = "the files in the hub's answer about the revision cannot be read";
  auto document = Read(json, kDeepestOfSiblings);
  if (!document.ok()) return Annotate(document.status(), kWhat);
  const Json* siblings = FindField(*document, "siblings");
  StatusOr<std::vector<Entry>> entries = Bad("it has no siblings");
  if (siblings != nullptr) entries = ReadFiles(*siblings, kOfSiblings);
  if (!entries.ok()) return Annotate(entries.status(), kWhat);
  return entries;
}

std::optional<std::string> NextLink(std::string_view link) {
  while (true) {
    const size_t open = link.find('<');
    if (open == std::string_view::npos) return std::nullopt;
    const size_t close = link.find('>', open);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view url = link.substr(open + 1, close - open - 1);
    link.remove_prefix(close + 1);
    // The link's parameters end at the first comma outside quotes.
    size_t end = 0;
    for (bool quoted = false; end < link.size() && (quoted || link[end] != ','); ++end) {
      if (link[end] == '"') quoted = !quoted;
    }
    for (std::string_view parameter : Split(link.substr(0, end), ';')) {
      const size_t equals = parameter.find('=');
      if (equals == std::string_view::npos || Lower(Strip(parameter.substr(0, equals))) != "rel") continue;
      std::string_view value = Strip(parameter.substr(equals + 1));
      if (value.size() > 1 && value.starts_with('"') && value.ends_with('"')) value = value.substr(1, value.size() - 2);
      for (std::string_view relation : Split(value, ' ')) {
        if (Lower(relation) == "next" && !url.empty()) return std::string(url);
      }
    }
    link.remove_prefix(end);
  }
}

http::Refusal RefusalOfHub(const http::ResponseHead& head, std::string_view body, std::string_view what,
                           bool with_token, int64_t unix_now) {
  const int status = head.status;
  const HubError error = ErrorOf(head, body);
  std::string text = fmt::format("{}: {}", what, status);
  if (!error.code.empty()) text += fmt::format(" {}", Quoted(error.code, 64));
  if (!error.message.empty()) text += fmt::format(": {}", Quoted(error.message));
  const auto asked = http::AskedBy(head, unix_now);
  if (status == 429) {
    text += with_token ? "; the rate limit is used up" : "; the rate limit is used up, it is higher with a token";
    return {http::Refusal::Kind::kThrottled, absl::UnavailableError(text), asked};
  }
  if (status == 503) return {http::Refusal::Kind::kThrottled, absl::UnavailableError(text), asked};
  if (status == 405 || status == 501) {
    return {http::Refusal::Kind::kFatal,
            absl::FailedPreconditionError(fmt::format(
                "{}; {} is not served there: HF_ENDPOINT has to be the hub, or a mirror that has its API, too", text,
                Quoted(http::WithoutQuery(head.url)))),
            {}};
  }
  if (status == 408 || status >= 500) return {http::Refusal::Kind::kTransient, absl::UnavailableError(text), asked};
  if (error.code == "DisabledRepo" || error.message.starts_with("Access to this resource is disabled")) {
    return {http::Refusal::Kind::kFatal, absl::FailedPreconditionError(text + "; the hub has disabled it"), {}};
  }
  if (status == 401 || status == 403 || status == 404 || status == 410) {
    // The hub's own 404 has an error code; without one, it is another server's: show the URL.
    if (status == 404 && error.code.empty()) text += fmt::format(" for {}", Quoted(http::WithoutQuery(head.url)));
    return {http::Refusal::Kind::kFatal, Denied(status, error, text, with_token), {}};
  }
  return {http::Refusal::Kind::kFatal, absl::FailedPreconditionError(text), {}};
}

}  // namespace muster::initializers
