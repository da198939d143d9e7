// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_argument.h"

#include "agent/probe/wait_targets.h"
#include "agent/watch/preempt_rules.h"
#include "agent/workers/run_options.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr std::string_view kHttp = "http://";

struct ClusterKind {
  std::string_view prefix;
  TopTarget::Kind kind;
};
constexpr ClusterKind kClusterKinds[] = {
    {"pod/", TopTarget::Kind::kPod},
    {"trainjob/", TopTarget::Kind::kTrainJob},
    {"pytorchjob/", TopTarget::Kind::kPyTorchJob},
};

StatusOr<TopTarget> ParseAgent(std::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(HttpUrl url, ParseHttpUrl(text));
  const bool has_path = url.target != "/" && url.target != "/status";
  if (has_path) return absl::InvalidArgumentError(fmt::format("'{}': want http://HOST:PORT, without a path", text));
  const std::string_view place = text.substr(kHttp.size());
  const size_t bracket = place.find(']');  // of an IPv6 address
  const bool has_port = place.find(':', bracket == std::string_view::npos ? 0 : bracket) != std::string_view::npos;
  TopTarget target{.kind = TopTarget::Kind::kAgent, .host = std::move(url.host)};
  target.port = has_port ? url.port : kHttpPortUnderKubernetes;
  return target;
}

}  // namespace

StatusOr<TopTarget> ParseTopTarget(std::string_view text) {
  if (text.starts_with("https://")) {
    return absl::InvalidArgumentError(
        fmt::format("'{}': an agent's HTTP port has no TLS; want http://HOST:PORT", text));
  }
  if (text.starts_with(kHttp)) return ParseAgent(text);
  for (const ClusterKind& kind : kClusterKinds) {
    if (!text.starts_with(kind.prefix)) continue;
    const std::string_view name = text.substr(kind.prefix.size());
    if (!IsJobName(name)) return absl::InvalidArgumentError(fmt::format("'{}': '{}' is not a name", text, name));
    return TopTarget{.kind = kind.kind, .name = std::string(name)};
  }
  if (text.find('/') != std::string_view::npos) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}': want HOST[:PORT], http://HOST:PORT, trainjob/NAME, pytorchjob/NAME, pod/NAME, or the name of "
        "a job of `muster local`",
        text));
  }
  MUSTER_ASSIGN_OR_RETURN(WaitTarget place, ParseWaitTarget(text, WaitKind::kRendezvous));
  return TopTarget{.kind = TopTarget::Kind::kCoordinator, .host = std::move(place.host), .port = place.port};
}

}  // namespace muster::agent
