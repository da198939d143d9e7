// SPDX-License-Identifier: Apache-2.0
#include "initializers/aws/machine.h"

#include <arpa/inet.h>

#include <cstring>

#include "base/quoted.h"
#include "base/text.h"
#include "http/endpoint_url.h"

namespace muster::initializers {
namespace {

constexpr std::string_view kEcs = "http://169.254.170.2";
constexpr std::string_view kMachine = "http://169.254.169.254";
constexpr std::string_view kMachineV6 = "http://[fd00:ec2::254]";
constexpr int kMostTries = 100;  // also the most seconds

// `host` in the form of EndpointUrl.
bool IsAddress(const std::string& host, const char* address) {
  in6_addr one, other;
  if (!host.starts_with('[')) return host == address;
  return inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &one) == 1 &&
         inet_pton(AF_INET6, address, &other) == 1 && std::memcmp(&one, &other, sizeof(one)) == 0;
}

Status CheckContainerUrl(const std::string& text, std::string_view origin) {
  auto url = http::ParseEndpointUrl(text.substr(0, text.find('?')));
  if (url.ok() && text.find_first_of("# \t\r\n") != std::string::npos) {
    url = absl::InvalidArgumentError(fmt::format("{} has characters that must be percent-encoded", Quoted(text)));
  }
  if (!url.ok()) return Annotate(url.status(), origin);
  const bool known = IsAddress(url->host, "169.254.170.2") || IsAddress(url->host, "169.254.170.23") ||
                     IsAddress(url->host, "fd00:ec2::23");
  if (url->tls || known || http::IsThisMachine(*url)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} is {}: over http a token may only go to this machine, 169.254.170.2, 169.254.170.23 or "
                  "[fd00:ec2::23]; use https",
                  origin, Quoted(text)));
}

StatusOr<int> Count(const AwsConfig& config, std::string_view variable, std::string_view key) {
  const auto found = config.Find({variable}, {key});
  if (!found) return 1;
  const auto number = ParseInt(found->value);
  if (number && *number >= 1 && *number <= kMostTries) return static_cast<int>(*number);
  return absl::InvalidArgumentError(
      fmt::format("{} is {}; it must be from 1 to {}", found->origin, Quoted(found->value), kMostTries));
}

StatusOr<std::string> MachineEndpoint(const AwsConfig& config) {
  if (const auto own = config.Find({"AWS_EC2_METADATA_SERVICE_ENDPOINT"}, {"ec2_metadata_service_endpoint"})) {
    auto url = http::ParseEndpointUrl(own->value);
    if (!url.ok()) return Annotate(url.status(), own->origin);
    return http::UrlText(*url);
  }
  if (const auto mode =
          config.Find({"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"}, {"ec2_metadata_service_endpoint_mode"})) {
    const std::string word = Lower(mode->value);
    if (word == "ipv6") return std::string(kMachineV6);
    if (word == "ipv4") return std::string(kMachine);
    return absl::InvalidArgumentError(
        fmt::format("{} is {}; it must be IPv4 or IPv6", mode->origin, Quoted(mode->value)));
  }
  MUSTER_ASSIGN_OR_RETURN(const bool v6, config.Flag({"AWS_IMDS_USE_IPV6"}, {"imds_use_ipv6"}, false));
  return std::string(v6 ? kMachineV6 : kMachine);
}

}  // namespace

StatusOr<std::optional<ContainerEndpoint>> FindContainerEndpoint(const AwsConfig& config) {
  ContainerEndpoint container;
  if (const auto relative = config.Env({"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"})) {
    if (!relative->value.starts_with('/')) {
      return absl::InvalidArgumentError(
          fmt::format("{} is {}; it must begin with a slash", relative->origin, Quoted(relative->value)));
    }
    container.url = std::string(kEcs) + relative->value;
    container.origin = relative->origin;
  } else if (const auto full = config.Env({"AWS_CONTAINER_CREDENTIALS_FULL_URI"})) {
    container.url = full->value;
    container.origin = full->origin;
  } else {
    return std::nullopt;
  }
  MUSTER_RETURN_IF_ERROR(CheckContainerUrl(container.url, container.origin));
  if (const auto file = config.Env({"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"})) {
    container.token_file = file->value;
  } else if (const auto token = config.Env({"AWS_CONTAINER_AUTHORIZATION_TOKEN"})) {
    if (token->value.find_first_of("\r\n") != std::string::npos) {
      return absl::InvalidArgumentError(fmt::format("{} has a line break, which no header can have", token->origin));
    }
    container.token = token->value;
  }
  return container;
}

StatusOr<InstanceMetadata> FindInstanceMetadata(const AwsConfig& config) {
  MUSTER_ASSIGN_OR_RETURN(const bool disabled, config.Flag({"AWS_EC2_METADATA_DISABLED"}, {}, false));
  if (disabled) {
    return absl::FailedPreconditionError(
        "no identity is configured, and AWS_EC2_METADATA_DISABLED forbids to ask the machine; set AWS_ACCESS_KEY_ID "
        "and "
        "AWS_SECRET_ACCESS_KEY, a profile or a role, or awsAnonymousCredential=true for public buckets");
  }
  InstanceMetadata machine;
  MUSTER_ASSIGN_OR_RETURN(machine.endpoint, MachineEndpoint(config));
  MUSTER_ASSIGN_OR_RETURN(machine.timeout_seconds,
                          Count(config, "AWS_METADATA_SERVICE_TIMEOUT", "metadata_service_timeout"));
  MUSTER_ASSIGN_OR_RETURN(machine.attempts,
                          Count(config, "AWS_METADATA_SERVICE_NUM_ATTEMPTS", "metadata_service_num_attempts"));
  return machine;
}

}  // namespace muster::initializers
