// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/hub_settings.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "base/utf8.h"
#include "http/endpoint_url.h"

namespace muster::initializers {
namespace {

constexpr char kHub[] = "https://huggingface.co";
constexpr size_t kLongestRevision = 255;
constexpr size_t kLongestToken = 4096;

bool IsSet(const Environment& environment, std::string_view name) {
  const auto value = environment.NonBlank(name);
  return value && ParseFlag(*value).value_or(false);
}

std::string Expanded(const std::string& path, const std::string& home) {
  return path.starts_with("~/") && !home.empty() ? home + path.substr(1) : path;
}

// The path of `name` in the hub client's folder; nullopt: not even HOME is known.
std::optional<std::string> InHubHome(const Environment& environment, const std::string& home, std::string_view name) {
  if (const auto own = environment.NonBlank("HF_HOME")) return fmt::format("{}/{}", Expanded(*own, home), name);
  if (const auto cache = environment.NonBlank("XDG_CACHE_HOME")) {
    return fmt::format("{}/huggingface/{}", Expanded(*cache, home), name);
  }
  if (home.empty()) return std::nullopt;
  return fmt::format("{}/.cache/huggingface/{}", home, name);
}

Status CheckToken(std::string_view token, std::string_view origin) {
  const bool plain = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (plain && token.size() <= kLongestToken) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "the token in {} {}; set it to the token alone", origin,
      plain ? "is longer than any token" : "has a line break or another character that no token has inside it"));
}

StatusOr<std::optional<Environment::Variable>> FindToken(const Environment& environment, const ReadText& read,
                                                         const std::string& home) {
  auto token = environment.FirstOf("ACCESS_TOKEN HF_TOKEN HUGGING_FACE_HUB_TOKEN HUGGING_FACE_TOKEN");
  if (token || IsSet(environment, "HF_HUB_DISABLE_IMPLICIT_TOKEN")) return token;
  std::optional<std::string> path = InHubHome(environment, home, "token");
  if (const auto named = environment.NonBlank("HF_TOKEN_PATH")) path = Expanded(*named, home);
  if (!path) return std::nullopt;
  auto text = read(*path);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  if (!text.ok()) return Annotate(text.status(), fmt::format("the token in {} cannot be read", *path));
  if (Strip(*text).empty()) return std::nullopt;
  return Environment::Variable{*path, std::string(Strip(*text))};
}

Status CheckRevision(std::string_view revision) {
  const bool plain = std::none_of(revision.begin(), revision.end(), [](unsigned char c) { return c <= ' '; });
  if (plain && revision.size() <= kLongestRevision && IsUtf8(revision)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("MODEL_VERSION is {}, which is not a revision (a branch, a tag, a commit)", Quoted(revision)));
}

}  // namespace

std::string FindHubRevision(const Source& source, const Environment& environment) {
  if (!source.revision.empty()) return source.revision;
  const auto version = environment.NonBlank("MODEL_VERSION");
  return version.value_or("main");
}

StatusOr<std::string> FindHubCache(const Environment& environment, const std::string& home) {
  if (const auto named = environment.FirstOf("HF_HUB_CACHE HUGGINGFACE_HUB_CACHE")) return Expanded(named->value, home);
  auto path = InHubHome(environment, home, "hub");
  if (path) return *std::move(path);
  return absl::FailedPreconditionError("the folder of the hub's cache is not known: set HF_HUB_CACHE, or give --to");
}

StatusOr<HubSettings> FindHubSettings(const Source& source, bool anonymous, const Environment& environment,
                                      const ReadText& read, const std::string& home) {
  if (IsSet(environment, "HF_HUB_OFFLINE")) {
    return absl::InvalidArgumentError(
        "HF_HUB_OFFLINE is set, so that nothing can be brought in from the hub; unset it");
  }
  HubSettings settings;
  const auto endpoint = environment.NonBlank("HF_ENDPOINT");
  auto url = http::ParseEndpointUrl(endpoint.value_or(kHub));
  if (!url.ok()) return Annotate(url.status(), "HF_ENDPOINT");
  settings.endpoint = http::UrlText(*url);
  settings.revision = FindHubRevision(source, environment);
  MUSTER_RETURN_IF_ERROR(CheckRevision(settings.revision));
  if (anonymous) return settings;
  MUSTER_ASSIGN_OR_RETURN(auto token, FindToken(environment, read, home));
  if (!token) return settings;
  MUSTER_RETURN_IF_ERROR(CheckToken(token->value, token->name));
  settings.token = std::move(token->value);
  settings.token_origin = std::move(token->name);
  return settings;
}

}  // namespace muster::initializers
