// SPDX-License-Identifier: Apache-2.0
#include "initializers/facts/source.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/quoted.h"
#include "base/text.h"
#include "base/utf8.h"
#include "http/percent.h"

namespace muster::initializers {
namespace {

constexpr size_t kLongestBucket = 255;
constexpr size_t kLongestClaim = 253;
constexpr size_t kLongestName = 96;  // of a namespace or a repository
constexpr size_t kLongestRevision = 255;
constexpr size_t kLongestHost = 253;

constexpr std::string_view kKnown =
    "s3://BUCKET/KEY, gs://BUCKET/OBJECT, hf://NAMESPACE/NAME, pvc://CLAIM/PATH, file:///PATH, https://HOST/PATH";

struct SchemeName {
  std::string_view name;
  Scheme scheme;
};
constexpr SchemeName kSchemes[] = {{"s3", Scheme::kS3},     {"gs", Scheme::kGcs},    {"hf", Scheme::kHuggingFace},
                                   {"pvc", Scheme::kPvc},   {"file", Scheme::kFile}, {"http", Scheme::kHttp},
                                   {"https", Scheme::kHttp}};
// What a user can set instead of a user and password in the URI.
std::string_view CredentialsOf(Scheme scheme) {
  switch (scheme) {
    case Scheme::kS3:
      return "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY from a Secret";
    case Scheme::kGcs:
      return "set GOOGLE_APPLICATION_CREDENTIALS to a file from a Secret";
    case Scheme::kHttp:
      return "https:// sends none; use a signed URL, or a store that takes credentials (s3://, gs://, hf://)";
    case Scheme::kHuggingFace:
      return "set HF_TOKEN from a Secret";
    case Scheme::kPvc:
    case Scheme::kFile:
      break;
  }
  return "leave them out: it needs none";
}

// Other spellings of the schemes, by people and other tools.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"s3a", "s3"}, {"s3n", "s3"}, {"gcs", "gs"}, {"huggingface", "hf"}};

const SchemeName* FindScheme(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSchemes), std::end(kSchemes),
                                   [&](const SchemeName& scheme) { return scheme.name == name; });
  return found == std::end(kSchemes) ? nullptr : found;
}

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Letters, digits and characters of `others`; no dot or dash in front, which would change a host name's meaning.
bool IsNameOf(std::string_view text, std::string_view others, size_t longest) {
  return !text.empty() && text.size() <= longest && text[0] != '.' && text[0] != '-' &&
         text.find("..") == std::string_view::npos && std::all_of(text.begin(), text.end(), [&](char c) {
           return IsWord(c) || others.find(c) != std::string_view::npos;
         });
}

// Splits `text` before the first character of `ends`.
std::pair<std::string_view, std::string_view> Cut(std::string_view text, std::string_view ends) {
  const size_t at = std::min(text.find_first_of(ends), text.size());
  return {text.substr(0, at), text.substr(at)};
}

// Query parameters whose values are no secrets. The value of any other parameter may be one.
constexpr std::string_view kHarmless =
    " alt download dl expires export file filename format generation id name page part path raw ref revision se sp sv "
    "v "
    "version versionid x-amz-algorithm x-amz-date x-amz-expires x-amz-signedheaders x-goog-algorithm x-goog-date "
    "x-goog-expires x-goog-signedheaders ";

constexpr std::string_view kHashFragment = "#sha256=";

bool IsHarmless(std::string_view parameter) {
  return kHarmless.find(fmt::format(" {} ", Lower(parameter))) != std::string_view::npos;
}

// The length of "USER:PASSWORD@" or "hf_TOKEN@" at the start of what follows "hf://". Any other '@' begins a revision.
size_t HubUserSize(std::string_view rest) {
  const std::string_view first = rest.substr(0, rest.find('/'));
  const size_t at = first.rfind('@');
  if (at == std::string_view::npos) return 0;
  return first.substr(0, at).find(':') != std::string_view::npos || first.starts_with("hf_") ? at + 1 : 0;
}

// The URI without user and password, and without values of its query that may be secret.
std::string Showable(std::string_view uri) {
  std::string shown;
  const size_t slashes = uri.find("://");
  if (slashes == std::string_view::npos) return std::string(uri);
  const std::string scheme = Lower(uri.substr(0, slashes));
  shown += uri.substr(0, slashes + 3);
  uri.remove_prefix(slashes + 3);
  if (scheme == "hf") return shown + std::string(uri.substr(HubUserSize(uri)));
  auto [authority, rest] = Cut(uri, "/?#");
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) authority.remove_prefix(at + 1);
  shown += authority;
  if (!scheme.starts_with("http")) return shown + std::string(rest);
  const auto [target, fragment] = Cut(rest, "#");
  auto [path, query] = Cut(target, "?");
  shown += path;
  for (char before = '?'; !query.empty(); before = '&') {
    query.remove_prefix(1);
    const auto [parameter, others] = Cut(query, "&");
    const auto [name, value] = Cut(parameter, "=");
    shown += before;
    shown += value.size() <= 1 || IsHarmless(name) ? std::string(parameter) : std::string(name) + "=...";
    query = others;
  }
  if (fragment.starts_with(kHashFragment)) shown += fragment;
  return shown;
}

Status Bad(std::string_view uri, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("the source {}: {}", Quoted(Showable(uri)), what));
}

Status CheckText(std::string_view uri) {
  if (uri.empty()) return absl::InvalidArgumentError(fmt::format("there is no source URI; give one of {}", kKnown));
  if (uri.size() > kLongestUri) {
    return Bad(uri, fmt::format("it has {} bytes, and a URI has at most {}", uri.size(), kLongestUri));
  }
  const bool control = std::any_of(uri.begin(), uri.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (control)
    return Bad(uri,
               "it contains a line end or another control character; is there one at the end of a Secret's value?");
  if (!IsUtf8(uri)) return Bad(uri, "it is not UTF-8");
  return absl::OkStatus();
}

Status NoScheme(std::string_view uri) {
  if (uri.starts_with('/')) return Bad(uri, fmt::format("for a path of this machine write file://{}", uri));
  const auto [word, rest] = Cut(uri, ":");
  if (const SchemeName* scheme = FindScheme(Lower(word)); scheme != nullptr && !rest.empty()) {
    return Bad(uri, fmt::format("after {}: come two slashes; known are {}", scheme->name, kKnown));
  }
  return Bad(uri, fmt::format("it has no scheme; known are {}", kKnown));
}

Status UnknownScheme(std::string_view uri, std::string_view name) {
  for (const auto& [other, ours] : kOtherNames) {
    if (other == name) return Bad(uri, fmt::format("write {}:// for {}://", ours, name));
  }
  if (name == "cache") {
    return Bad(uri,
               "Kubeflow's data cache is a service of its own, which Muster does not set up; name the data itself "
               "(s3://BUCKET/PREFIX/), or let Kubeflow's dataset initializer build the cache");
  }
  return Bad(uri, fmt::format("the scheme {} is not known; known are {}", Quoted(name), kKnown));
}

// True if an element of the path is "", "." or ".."; one trailing '/' is allowed.
bool HasOddElements(std::string_view path) {
  if (path.starts_with('/')) return true;
  if (path.ends_with('/')) path.remove_suffix(1);
  const std::vector<std::string_view> elements = Split(path, '/');
  return std::any_of(elements.begin(), elements.end(),
                     [](std::string_view element) { return element.empty() || element == "." || element == ".."; });
}

Status ReadBucket(std::string_view rest, Source* source) {
  const auto [bucket, key] = Cut(rest, "/");
  if (!IsNameOf(bucket, "-._", kLongestBucket)) {
    return bucket.empty() ? Bad(source->uri, "it names no bucket: after the two slashes comes BUCKET[/KEY]")
                          : Bad(source->uri, fmt::format("{} is not a bucket's name (letters, digits, '-', '.', '_')",
                                                         Quoted(bucket)));
  }
  source->container = bucket;
  source->path = key.substr(std::min<size_t>(key.size(), 1));
  return absl::OkStatus();
}

Status ReadClaim(std::string_view rest, Source* source) {
  const auto [claim, path] = Cut(rest, "/");
  const bool lower = std::none_of(claim.begin(), claim.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (!lower || !IsNameOf(claim, "-.", kLongestClaim) || !IsWord(claim.back())) {
    return claim.empty()
               ? Bad(source->uri, "it names no claim: after the two slashes comes CLAIM[/PATH]")
               : Bad(source->uri,
                     fmt::format("{} is not a claim's name (lower-case letters, digits, '-', '.')", Quoted(claim)));
  }
  source->container = claim;
  source->path = path.substr(std::min<size_t>(path.size(), 1));
  if (HasOddElements(source->path)) return Bad(source->uri, "write the path in the claim without '.', '..' and '//'");
  return absl::OkStatus();
}

Status ReadFile(std::string_view rest, Source* source) {
  const auto [host, path] = Cut(rest, "/");
  if (!host.empty() && host != "localhost") {
    return Bad(source->uri, fmt::format("a path of this machine has three slashes before it; write file:///{}", rest));
  }
  if (path.empty()) return Bad(source->uri, "it names no path; write file:///PATH");
  source->path = path;
  return absl::OkStatus();
}

bool IsHost(std::string_view host) {
  if (!host.starts_with('[')) return IsNameOf(host, "-._", kLongestHost);
  return host.size() > 4 && host.ends_with(']') &&
         host.find_first_not_of("0123456789abcdefABCDEF:.", 1) == host.size() - 1;
}

// The fragment of an http URI, with its '#'.
Status ReadFragment(std::string_view fragment, Source* source) {
  if (fragment.find('=') == std::string_view::npos) return absl::OkStatus();
  if (!fragment.starts_with(kHashFragment)) {
    return Bad(source->uri, fmt::format("{} is not known in a fragment, only {}HEX is; leave it out",
                                        Quoted(fragment.substr(0, fragment.find('=') + 1)), kHashFragment));
  }
  auto value = FromHex(fragment.substr(kHashFragment.size()));
  if (!value.ok() || value->size() != HashBytes(HashKind::kSha256)) {
    return Bad(source->uri, fmt::format("{} is not a SHA-256: it has {} hex digits", Quoted(fragment),
                                        2 * HashBytes(HashKind::kSha256)));
  }
  source->expected = Expectation{HashKind::kSha256, *std::move(value), 0};
  return absl::OkStatus();
}

Status ReadHttp(std::string_view rest, Source* source) {
  const auto [whole, fragment] = Cut(rest, "#");
  const auto [authority, target] = Cut(whole, "/?");
  const size_t colon = authority.ends_with(']') ? std::string_view::npos : authority.rfind(':');
  bool good = IsHost(authority.substr(0, colon));
  if (colon != std::string_view::npos) {
    const auto port = ParseInt(authority.substr(colon + 1));
    good = good && port && *port >= 1 && *port <= 65535;
  }
  if (!good) {
    // A password with a '/' in it gets here: show nothing that could be one.
    return absl::InvalidArgumentError(fmt::format("the source '{}://...': after the two slashes comes HOST[:PORT]/PATH",
                                                  source->tls ? "https" : "http"));
  }
  source->container = Lower(authority);
  const auto [path, query] = Cut(target, "?");
  if (path.empty() || path.ends_with('/')) {
    return Bad(source->uri, "it names no file, and folders cannot be listed over http; write https://HOST/PATH/FILE");
  }
  if (target.find(' ') != std::string_view::npos) return Bad(source->uri, "a space in it is written %20");
  const bool hub = source->container == "huggingface.co" || source->container == "hf.co";
  if (hub && path.find("/resolve/") == std::string_view::npos) {
    return Bad(source->uri, "this is a web page of the hub; write hf://NAMESPACE/NAME for a repository");
  }
  source->path = target;
  return ReadFragment(fragment, source);
}

constexpr std::string_view kHubForm = "hf://[models/|datasets/|spaces/]NAMESPACE/NAME[@REVISION][/PATH]";

// Removes a leading "models/" or the like.
Status ReadRepoType(Role role, std::string_view* rest, Source* source) {
  source->repo_type = role == Role::kDataset ? RepoType::kDataset : RepoType::kModel;
  constexpr struct {
    std::string_view name;
    RepoType type;
  } kTypes[] = {{"models", RepoType::kModel}, {"datasets", RepoType::kDataset}, {"spaces", RepoType::kSpace}};
  const auto [first, others] = Cut(*rest, "/");
  for (const auto& type : kTypes) {
    if (first == type.name) {
      source->repo_type = type.type;
      rest->remove_prefix(std::min(first.size() + 1, rest->size()));
      return absl::OkStatus();
    }
    if (first == type.name.substr(0, type.name.size() - 1)) {
      return Bad(source->uri, fmt::format("write {}/ for {}/", type.name, first));
    }
  }
  if (first == "kernels" || first == "buckets" || first == "collections") {
    return Bad(source->uri, fmt::format("{} of the hub are not supported; expected is {}", first, kHubForm));
  }
  return absl::OkStatus();
}

// The length of the revision at the start of "refs/pr/3/PATH".
size_t RevisionSize(std::string_view text) {
  for (std::string_view prefix : {"refs/pr/", "refs/convert/"}) {
    if (text.starts_with(prefix)) return std::min(text.find('/', prefix.size()), text.size());
  }
  return std::min(text.find('/'), text.size());
}

Status ReadRevision(std::string_view written, Source* source) {
  std::string revision = http::PercentDecode(written);
  // The rules of git check-ref-format; the hub's own rules are a subset.
  const bool odd = revision.empty() || revision.size() > kLongestRevision || revision.starts_with('/') ||
                   revision.ends_with('/') || revision.ends_with('.') || revision.find("..") != std::string::npos ||
                   revision.find("//") != std::string::npos || !IsUtf8(revision) ||
                   std::any_of(revision.begin(), revision.end(), [](unsigned char c) {
                     return c <= 0x20 || c == 0x7f ||
                            std::string_view("~^:?*[\\").find(static_cast<char>(c)) != std::string_view::npos;
                   });
  if (odd) return Bad(source->uri, fmt::format("{} is not a revision (a branch, a tag, a commit)", Quoted(revision)));
  if (revision == "refs" || revision == "refs/pr" || revision == "refs/convert") {
    return Bad(source->uri,
               fmt::format("{} is not a revision; write refs/pr/N, refs/convert/NAME, or a branch with %2F for '/'",
                           Quoted(revision)));
  }
  source->revision = std::move(revision);
  return absl::OkStatus();
}

Status ReadRepository(std::string_view rest, Role role, Source* source) {
  MUSTER_RETURN_IF_ERROR(ReadRepoType(role, &rest, source));
  const auto [space, after_space] = Cut(rest, "/@:");
  const auto [name, after_name] = Cut(after_space.substr(std::min<size_t>(after_space.size(), 1)), "/@:");
  if (space.empty() || name.empty() || !after_space.starts_with('/')) {
    return Bad(source->uri,
               fmt::format("a repository has a namespace, as in openai-community/gpt2; expected is {}", kHubForm));
  }
  for (std::string_view part : {space, name}) {
    if (!IsNameOf(part, "-._", kLongestName)) {
      return Bad(source->uri, fmt::format("{} is not a name on the hub; expected is {}", Quoted(part), kHubForm));
    }
  }
  source->container = fmt::format("{}/{}", space, name);
  std::string_view path = after_name;
  if (!path.empty() && path[0] != '/') {
    path.remove_prefix(1);
    const size_t size = RevisionSize(path);
    MUSTER_RETURN_IF_ERROR(ReadRevision(path.substr(0, size), source));
    path.remove_prefix(size);
  }
  source->path = path.substr(std::min<size_t>(path.size(), 1));
  if (HasOddElements(source->path))
    return Bad(source->uri, "write the path in the repository without '.', '..' and '//'");
  return absl::OkStatus();
}

}  // namespace

StatusOr<Source> ParseSource(std::string_view uri, Role role) {
  MUSTER_RETURN_IF_ERROR(CheckText(uri));
  const size_t slashes = uri.find("://");
  if (slashes == std::string_view::npos) return NoScheme(uri);
  const std::string name = Lower(uri.substr(0, slashes));
  const SchemeName* scheme = FindScheme(name);
  if (scheme == nullptr) return UnknownScheme(uri, name);

  Source source;
  source.scheme = scheme->scheme;
  source.uri = Showable(uri);
  source.tls = name != "http";
  const std::string_view rest = uri.substr(slashes + 3);
  const bool hub = source.scheme == Scheme::kHuggingFace;
  const bool user = hub ? HubUserSize(rest) > 0 : Cut(rest, "/?#").first.find('@') != std::string_view::npos;
  if (user) {
    return Bad(uri, fmt::format("a user and password have no place in a URI: pod specs and logs show it; {}",
                                CredentialsOf(source.scheme)));
  }
  if (hub) {
    MUSTER_RETURN_IF_ERROR(ReadRepository(rest, role, &source));
  } else {
    MUSTER_RETURN_IF_ERROR(source.scheme == Scheme::kPvc    ? ReadClaim(rest, &source)
                           : source.scheme == Scheme::kFile ? ReadFile(rest, &source)
                           : source.scheme == Scheme::kHttp ? ReadHttp(rest, &source)
                                                            : ReadBucket(rest, &source));
  }
  source.folder = source.path.empty() || (source.path.ends_with('/') && source.scheme != Scheme::kHttp);
  return source;
}

}  // namespace muster::initializers
