// SPDX-License-Identifier: Apache-2.0
#include "initializers/aws/settings.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

#include "base/quoted.h"
#include "base/text.h"
#include "http/endpoint_url.h"
#include "http/percent.h"
#include "initializers/stores/ca_bundle.h"

namespace muster::initializers {
namespace {

constexpr std::string_view kFirstRegion = "us-east-1";
constexpr size_t kLongestLabel = 63;  // bytes of a label of a host name
constexpr size_t kShortestBucket = 3;

// Source: partitions.json of the AWS SDKs.
constexpr struct {
  std::string_view region_prefix, domain, dualstack_domain;
} kPartitions[] = {
    {"cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"},
    {"eusc-", "amazonaws.eu", "api.amazonwebservices.eu"},
    {"us-iso-", "c2s.ic.gov", "api.aws.ic.gov"},
    {"us-isob-", "sc2s.sgov.gov", "api.aws.scloud"},
    {"eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"},
    {"us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"},
    {"", "amazonaws.com", "api.aws"},
};

const auto& PartitionOf(std::string_view region) {
  return *std::find_if(std::begin(kPartitions), std::end(kPartitions),
                       [region](const auto& partition) { return region.starts_with(partition.region_prefix); });
}

Status Bad(const AwsSetting& setting, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{} is {}; {}", setting.origin, Quoted(setting.value), what));
}

// True if `text` can be a label of a host name.
bool IsLabel(std::string_view text) {
  return !text.empty() && text.size() <= kLongestLabel && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; });
}

// True if the bucket can be the first label of a host name, or, with `dots`, its first labels.
bool FitsHost(std::string_view bucket, bool dots) {
  if (bucket.size() < kShortestBucket || bucket.size() > kLongestLabel) return false;
  for (std::string_view label : Split(bucket, '.')) {
    if (!IsLabel(label) || Lower(label) != label) return false;
  }
  if (bucket.find('.') == std::string_view::npos) return true;
  return dots && bucket.back() != '.' && bucket.find_first_not_of("0123456789.") != std::string_view::npos;
}

bool IsAddress(const std::string& host) {
  in_addr v4;
  return host.starts_with('[') || inet_pton(AF_INET, host.c_str(), &v4) == 1;
}

StatusOr<std::string> RegionOf(const AwsConfig& config, bool custom_endpoint) {
  const auto region = config.Find({"REGION", "AWS_REGION", "AWS_DEFAULT_REGION"}, {"region"});
  if (!region || region->value == "aws-global") return std::string();
  if (region->value == "auto" && !custom_endpoint) return std::string();
  if (!IsLabel(region->value)) return Bad(*region, "it must be a region, like eu-west-1");
  return region->value;
}

// endpoint_url of a service in the section that the profile's `services` names.
StatusOr<std::optional<AwsSetting>> OfServices(const AwsConfig& config, std::string_view service) {
  const auto services = config.profile().Get("services");
  if (!services) return std::nullopt;
  const IniSection* section = config.FindSection("services", services->value);
  if (!section) {
    return Bad(*services, fmt::format("there is no [services {}] in {}", services->value, config.config_path()));
  }
  const AwsProfile as_profile{.config = *section};
  auto found = as_profile.Get(fmt::format("{}.endpoint_url", service));
  if (found) {
    found->origin =
        fmt::format("endpoint_url of {} in [services {}] of {}", service, services->value, config.config_path());
  }
  return found;
}

StatusOr<std::optional<http::EndpointUrl>> Parsed(const AwsSetting& setting) {
  auto url = http::ParseEndpointUrl(setting.value);
  if (!url.ok()) return Annotate(url.status(), setting.origin);
  return *std::move(url);
}

// The endpoint variables that botocore reads.
StatusOr<std::optional<http::EndpointUrl>> OfEnvironment(const AwsConfig& config, std::string_view service,
                                                         bool ignored) {
  if (ignored) return std::nullopt;
  const std::string own = "AWS_ENDPOINT_URL_" + Upper(service);
  const auto found = config.Env({own, "AWS_ENDPOINT_URL"});
  if (!found) return std::nullopt;
  return Parsed(*found);
}

StatusOr<std::optional<http::EndpointUrl>> OfProfile(const AwsConfig& config, std::string_view service, bool ignored) {
  if (ignored) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(auto found, OfServices(config, service));
  if (!found) found = config.profile().Get("endpoint_url");
  if (!found) return std::nullopt;
  return Parsed(*found);
}

StatusOr<bool> EndpointsIgnored(const AwsConfig& config) {
  return config.Flag({"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"}, {"ignore_configured_endpoint_urls"}, false);
}

StatusOr<std::optional<http::EndpointUrl>> S3Endpoint(const AwsConfig& config) {
  if (auto kubeflow = config.Env({"ENDPOINT"})) {
    if (kubeflow->value.find("://") == std::string::npos) kubeflow->value.insert(0, "https://");
    return Parsed(*kubeflow);
  }
  MUSTER_ASSIGN_OR_RETURN(const bool ignored, EndpointsIgnored(config));
  MUSTER_ASSIGN_OR_RETURN(auto found, OfEnvironment(config, "s3", ignored));
  if (found) return found;
  if (const auto s5cmd = config.Env({"S3_ENDPOINT_URL"})) return Parsed(*s5cmd);
  if (auto kserve = config.Env({"S3_ENDPOINT"})) {
    MUSTER_ASSIGN_OR_RETURN(const bool tls, config.Flag({"S3_USE_HTTPS"}, {}, true));
    if (kserve->value.find("://") == std::string::npos) kserve->value.insert(0, tls ? "https://" : "http://");
    return Parsed(*kserve);
  }
  return OfProfile(config, "s3", ignored);
}

// The region in "s3.REGION.DOMAIN"; empty for "s3.amazonaws.com"; nullopt: it is not an endpoint of AWS.
std::optional<std::string> RegionOfOwnEndpoint(const http::EndpointUrl& url) {
  if (!url.tls || url.port != 0 || !url.path.empty()) return std::nullopt;
  if (url.host == "s3.amazonaws.com") return std::string();
  const auto labels = Split(url.host, '.');
  constexpr size_t kFewest = 4;
  if (labels.size() < kFewest || labels[0] != "s3" || !IsLabel(labels[1])) return std::nullopt;
  const std::string region(labels[1]);
  if (region.find('-') == std::string::npos || url.host != fmt::format("s3.{}.{}", region, AwsDomain(region))) {
    return std::nullopt;
  }
  return region;
}

std::string CaBundle(const AwsConfig& config) {
  const auto profile = config.profile().Get("ca_bundle");
  return FindCaBundle(Scheme::kS3, config.environment(), profile ? profile->value : "");
}

StatusOr<bool> RequesterPays(const AwsConfig& config) {
  const auto payer = config.Env({"AWS_REQUEST_PAYER"});
  if (!payer) return false;
  if (Lower(payer->value) == "requester") return true;
  if (const auto flag = ParseFlag(payer->value)) return *flag;
  return Bad(*payer, "it must be requester");
}

// The configured style: true for virtual-host style; nullopt: nothing is configured.
StatusOr<std::optional<bool>> WantsVirtualHost(const AwsConfig& config) {
  MUSTER_ASSIGN_OR_RETURN(const bool kserve, config.Flag({"S3_USER_VIRTUAL_BUCKET"}, {}, false));
  if (kserve) return true;
  const auto style = config.profile().Get("s3.addressing_style");
  if (!style || style->value == "auto") return std::nullopt;
  if (style->value != "virtual" && style->value != "path") return Bad(*style, "it must be auto, virtual or path");
  return style->value == "virtual";
}

Status CheckBucket(std::string_view bucket, bool custom_endpoint) {
  if (bucket.starts_with("arn:")) {
    return absl::UnimplementedError(fmt::format(
        "{} is an ARN, which is not supported; give the bucket, or the access point's alias", Quoted(bucket)));
  }
  if (!custom_endpoint && bucket.ends_with("--x-s3")) {
    return absl::UnimplementedError(fmt::format(
        "{} is a directory bucket (S3 Express), which is not supported; copy it to an ordinary one", Quoted(bucket)));
  }
  if (bucket.empty() || bucket == "." || bucket == ".." || bucket.find_first_of("/?#") != std::string_view::npos) {
    return absl::InvalidArgumentError(fmt::format("{} is not a bucket", Quoted(bucket)));
  }
  return absl::OkStatus();
}

Status CheckAccelerate(const S3Place& place, std::string_view bucket) {
  std::string_view why;
  if (!place.endpoint.empty()) why = "a custom endpoint is set";
  if (place.fips) why = "FIPS endpoints are wanted";
  if (AwsDomain(place.region) != AwsDomain("")) why = "the region has none";
  if (!FitsHost(bucket, false)) why = "the bucket's name cannot be part of its host";
  if (why.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("S3 Transfer Acceleration is wanted (S3_USE_ACCELERATE, or use_accelerate_endpoint in the profile), "
                  "but {}; unset "
                  "one of them",
                  why));
}

// AWS's own host, without the bucket.
std::string OwnHost(const S3Place& place) {
  if (place.accelerate)
    return place.dualstack ? "s3-accelerate.dualstack.amazonaws.com" : "s3-accelerate.amazonaws.com";
  if (place.region.empty() && !place.dualstack && !place.fips) return "s3.amazonaws.com";
  const std::string_view region = place.region.empty() ? kFirstRegion : std::string_view(place.region);
  return fmt::format("s3{}{}.{}.{}", place.fips ? "-fips" : "", place.dualstack ? ".dualstack" : "", region,
                     AwsDomain(region));
}

}  // namespace

std::string_view AwsDomain(std::string_view region) { return PartitionOf(region).domain; }

StatusOr<S3Place> FindS3Place(const AwsConfig& config, std::string_view bucket) {
  S3Place place;
  MUSTER_ASSIGN_OR_RETURN(const auto endpoint, S3Endpoint(config));
  const auto own_region = endpoint ? RegionOfOwnEndpoint(*endpoint) : std::nullopt;
  const bool custom = endpoint && !own_region;
  MUSTER_RETURN_IF_ERROR(CheckBucket(bucket, custom));
  MUSTER_ASSIGN_OR_RETURN(place.region, RegionOf(config, custom));
  if (own_region && !own_region->empty()) place.region = *own_region;
  if (custom) {
    place.endpoint = http::UrlText(*endpoint);
  } else {
    MUSTER_ASSIGN_OR_RETURN(place.fips, config.Flag({"AWS_USE_FIPS_ENDPOINT"}, {"use_fips_endpoint"}, false));
    MUSTER_ASSIGN_OR_RETURN(const bool dualstack,
                            config.Flag({"AWS_USE_DUALSTACK_ENDPOINT"}, {"use_dualstack_endpoint"}, false));
    MUSTER_ASSIGN_OR_RETURN(place.dualstack, config.Flag({}, {"s3.use_dualstack_endpoint"}, dualstack));
  }
  if (place.fips && place.region.starts_with("cn-")) {
    return absl::InvalidArgumentError(fmt::format(
        "FIPS endpoints are wanted (AWS_USE_FIPS_ENDPOINT, or use_fips_endpoint in the profile), but {} has none",
        place.region));
  }
  MUSTER_ASSIGN_OR_RETURN(place.accelerate, config.Flag({"S3_USE_ACCELERATE"}, {"s3.use_accelerate_endpoint"}, false));
  MUSTER_ASSIGN_OR_RETURN(const auto wanted, WantsVirtualHost(config));
  const bool fits = FitsHost(bucket, custom && !endpoint->tls) && !(custom && IsAddress(endpoint->host));
  place.virtual_host = place.accelerate || (fits && wanted.value_or(!endpoint));
  if (place.accelerate) MUSTER_RETURN_IF_ERROR(CheckAccelerate(place, bucket));

  MUSTER_ASSIGN_OR_RETURN(place.requester_pays, RequesterPays(config));
  MUSTER_ASSIGN_OR_RETURN(place.verify_tls, config.Flag({"S3_VERIFY_SSL"}, {}, true));
  place.ca_bundle = CaBundle(config);
  return place;
}

S3Address AddressOf(const S3Place& place, std::string_view bucket, std::string_view key) {
  http::EndpointUrl url;
  url.host = OwnHost(place);
  if (!place.endpoint.empty()) {
    if (auto custom = http::ParseEndpointUrl(place.endpoint); custom.ok()) url = *std::move(custom);
  }
  std::string path = url.path;
  url.path.clear();
  if (place.virtual_host) {
    url.host = fmt::format("{}.{}", bucket, url.host);
  } else {
    path += '/' + http::PercentEncode(bucket);
  }
  if (!key.empty()) path += '/' + http::PercentEncode(key, "/");
  return {http::UrlText(url), http::HostHeader(url), path.empty() ? "/" : path};
}

StatusOr<StsPlace> FindStsPlace(const AwsConfig& config) {
  StsPlace place;
  MUSTER_ASSIGN_OR_RETURN(place.region, RegionOf(config, false));
  const bool known = !place.region.empty();
  if (!known) place.region = kFirstRegion;
  MUSTER_ASSIGN_OR_RETURN(const bool ignored, EndpointsIgnored(config));
  MUSTER_ASSIGN_OR_RETURN(auto custom, OfEnvironment(config, "sts", ignored));
  if (!custom) {
    MUSTER_ASSIGN_OR_RETURN(custom, OfProfile(config, "sts", ignored));
  }
  if (custom) {
    place.endpoint = http::UrlText(*custom);
    return place;
  }
  MUSTER_ASSIGN_OR_RETURN(const bool fips, config.Flag({"AWS_USE_FIPS_ENDPOINT"}, {"use_fips_endpoint"}, false));
  MUSTER_ASSIGN_OR_RETURN(const bool dualstack,
                          config.Flag({"AWS_USE_DUALSTACK_ENDPOINT"}, {"use_dualstack_endpoint"}, false));
  if (!known && !fips && !dualstack) {
    place.endpoint = "https://sts.amazonaws.com";
    return place;
  }
  const auto& partition = PartitionOf(place.region);
  const bool gov = place.region.starts_with("us-gov-");  // there the plain endpoints are the FIPS ones
  place.endpoint = fmt::format("https://sts{}.{}.{}", fips && !(gov && !dualstack) ? "-fips" : "", place.region,
                               dualstack ? partition.dualstack_domain : partition.domain);
  return place;
}

}  // namespace muster::initializers
