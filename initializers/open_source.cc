// SPDX-License-Identifier: Apache-2.0
#include "initializers/open_source.h"

#include "base/quoted.h"
#include "base/settings_file.h"
#include "base/text.h"
#include "http/endpoint_url.h"
#include "initializers/aws/credentials.h"
#include "initializers/aws/s3.h"
#include "initializers/google/gcs.h"
#include "initializers/stores/ca_bundle.h"
#include "initializers/stores/hub.h"
#include "initializers/stores/local_folder.h"
#include "initializers/stores/storage_config.h"
#include "initializers/stores/web_file.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

// What each kind of source needs, and how it makes an HTTP client.
struct Opening {
  asio::io_context& loop;
  DiskPool& pool;
  const Source& source;
  SourceSettings settings;
  const Environment& environment;
  std::function<double()> jitter;
  std::function<void(const std::string&)> say;

  std::string Home() const { return environment.Get("HOME").value_or(""); }
  http::Persistence Connect(OpenedSource* opened) {
    http::Options& http = settings.http;
    if (http.ca_bundle.empty()) http.ca_bundle = FindCaBundle(source.scheme, environment);
    http.ca_folders = FindCaFolders(environment);
    http.ca_remedy = fmt::format("name the authority's certificate with --ca-bundle ({})", CaVariables(source.scheme));
    opened->http = std::make_unique<http::Client>(loop, http);
    http::Limits limits = settings.limits;
    limits.total = kSmallAnswer;
    return {*opened->http, limits, settings.retry, jitter, say};
  }
};

OpenedSource With(OpenedSource opened, std::unique_ptr<Provider> provider) {
  opened.provider = provider.get();
  opened.catalogue = std::move(provider);
  return opened;
}

StatusOr<OpenedSource> OpenWeb(Opening opening) {
  OpenedSource opened;
  const http::Persistence persistence = opening.Connect(&opened);
  return With(std::move(opened), MakeWebFile(opening.loop, persistence, opening.source, opening.settings.allow_html));
}

StatusOr<OpenedSource> OpenFolder(Opening opening) {
  MUSTER_ASSIGN_OR_RETURN(LocalPlace place,
                          FindLocalPlace(opening.source, opening.settings.claims, opening.environment));
  OpenedSource opened;
  opened.catalogue = MakeLocalFolder(opening.pool, std::move(place), opening.settings.patterns, opening.say);
  return opened;
}

// Fails if the source is a prefix, which has no version id.
Status CheckOneObject(const Source& source) {
  if (!source.folder) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("--version-id is of one object, and {} is a prefix; leave it out", source.uri));
}

StatusOr<OpenedSource> OpenS3(Opening opening) {
  S3Settings s3;
  s3.version_id = opening.settings.version_id;
  if (!s3.version_id.empty()) MUSTER_RETURN_IF_ERROR(CheckOneObject(opening.source));
  MUSTER_ASSIGN_OR_RETURN(const S3Variables variables, WithStorageConfig(opening.environment, opening.source.uri));
  MUSTER_ASSIGN_OR_RETURN(AwsConfig config,
                          AwsConfig::Read(variables.environment, ReadSettingsFile, opening.Home(), variables.name_of));
  MUSTER_ASSIGN_OR_RETURN(s3.place, FindS3Place(config, opening.source.container));
  MUSTER_ASSIGN_OR_RETURN(StsPlace sts, FindStsPlace(config));
  AwsIdentity identity{Anonymous{}};
  if (!opening.settings.anonymous) {
    MUSTER_ASSIGN_OR_RETURN(identity, FindAwsIdentity(config));
  }
  http::Options& http = opening.settings.http;
  if (http.ca_bundle.empty()) http.ca_bundle = s3.place.ca_bundle;
  OpenedSource opened;
  const http::Persistence checked = opening.Connect(&opened);
  MUSTER_ASSIGN_OR_RETURN(auto keys, MakeAwsKeySource(checked, identity, sts));
  if (s3.place.verify_tls) {
    return With(std::move(opened), MakeS3(opening.loop, checked, opening.source, std::move(s3), std::move(keys)));
  }
  // verify_tls=false holds for the store only: servers that see our identity and give out keys must prove who they are.
  opened.identity_http = std::move(opened.http);
  http.verify_tls = false;
  http::Persistence persistence = opening.Connect(&opened);
  persistence.clock = checked.clock;
  return With(std::move(opened), MakeS3(opening.loop, persistence, opening.source, std::move(s3), std::move(keys)));
}

// Everybody who sees a bearer token can use it, so it goes only over TLS or to this machine.
Status CheckMayCarryToken(const std::string& endpoint) {
  MUSTER_ASSIGN_OR_RETURN(http::EndpointUrl url, http::ParseEndpointUrl(endpoint));
  if (url.tls || http::IsThisMachine(url)) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "the endpoint {}: over http a token may only go to this machine; use https, or --anonymous", Quoted(endpoint)));
}

StatusOr<OpenedSource> OpenGcs(Opening opening) {
  MUSTER_ASSIGN_OR_RETURN(GcsSettings gcs, FindGcsSettings(opening.environment));
  gcs.generation = opening.settings.version_id;
  if (gcs.generation.find_first_not_of("0123456789") != std::string::npos) {
    return absl::InvalidArgumentError(fmt::format(
        "--version-id {}: the version of a GCS object is its generation, a number", Quoted(gcs.generation)));
  }
  if (!gcs.generation.empty()) MUSTER_RETURN_IF_ERROR(CheckOneObject(opening.source));
  GoogleIdentity identity{NoGoogleIdentity{}};
  if (!opening.settings.anonymous) {
    MUSTER_ASSIGN_OR_RETURN(identity, FindGoogleIdentity(opening.environment, ReadSettingsFile, opening.Home()));
  }
  if (!std::holds_alternative<NoGoogleIdentity>(identity.who)) {
    MUSTER_RETURN_IF_ERROR(CheckMayCarryToken(gcs.endpoint));
  }
  OpenedSource opened;
  const http::Persistence persistence = opening.Connect(&opened);
  auto tokens = MakeBearerSource(persistence, identity);
  return With(std::move(opened), MakeGcs(opening.loop, persistence, opening.source, std::move(gcs), std::move(tokens)));
}

StatusOr<OpenedSource> OpenHub(Opening opening) {
  MUSTER_ASSIGN_OR_RETURN(HubSettings hub, FindHubSettings(opening.source, opening.settings.anonymous,
                                                           opening.environment, ReadSettingsFile, opening.Home()));
  hub.cache_layout = opening.settings.hub_cache;
  OpenedSource opened;
  const http::Persistence persistence = opening.Connect(&opened);
  return With(std::move(opened), MakeHub(opening.loop, persistence, opening.source, std::move(hub)));
}

}  // namespace

StatusOr<OpenedSource> OpenSource(asio::io_context& loop, DiskPool& pool, const Source& source, SourceSettings settings,
                                  const Environment& environment, std::function<double()> jitter,
                                  std::function<void(const std::string&)> say) {
  if (source.scheme != Scheme::kPvc && source.scheme != Scheme::kFile) {
    MUSTER_ASSIGN_OR_RETURN(settings.http.proxies, http::Proxies::Read(environment));
  }
  Opening opening{loop, pool, source, std::move(settings), environment, std::move(jitter), std::move(say)};
  switch (source.scheme) {
    case Scheme::kHttp:
      return OpenWeb(std::move(opening));
    case Scheme::kS3:
      return OpenS3(std::move(opening));
    case Scheme::kGcs:
      return OpenGcs(std::move(opening));
    case Scheme::kHuggingFace:
      return OpenHub(std::move(opening));
    case Scheme::kPvc:
    case Scheme::kFile:
      return OpenFolder(std::move(opening));
  }
  return absl::InternalError("a source of no scheme");
}

}  // namespace muster::initializers
