// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/rdzv_conf.h"

#include <algorithm>

#include "agent/flags/flag_values.h"
#include "base/text.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;

constexpr int kStaticTimeoutSeconds = 900;  // of torchrun's static backend

// Whether the backend reads the key, of those keys whose value can be wrong. PyTorch's handler for static reads only
// timeout, those for c10d read all the others. heartbeat_timeout is Muster's.
bool Reads(Backend backend, std::string_view key) {
  if (key == "heartbeat_timeout") return true;
  return backend == Backend::kStatic ? key == "timeout" : key != "timeout";
}

}  // namespace

Status ReadRdzvConf(const FlagValue& source, const std::map<std::string, std::string>& conf,
                    const Environment& environment, RunOptions* options) {
  // As under torchrun a wrong value is not an error if the backend does not read the key: it may be for another one.
  auto bad = [&](std::string_view key, std::string_view wanted) -> Status {
    const std::string& value = conf.at(std::string(key));
    if (Reads(options->job.backend, key)) return Bad(source, fmt::format("{}={}: {}", key, value, wanted));
    options->warnings.push_back(fmt::format("{}: {}={} has no effect: {}", source.origin, key, value, wanted));
    return absl::OkStatus();
  };
  auto duration = [&](std::string_view key, Duration lowest, std::optional<Duration>& into) -> Status {
    auto found = conf.find(std::string(key));
    if (found == conf.end()) return absl::OkStatus();
    auto value = ParseDuration(found->second);
    if (!value.ok()) return bad(key, Message(value.status()));
    if (*value < lowest) return bad(key, fmt::format("want at least {} s", lowest / seconds(1)));
    into = *value;
    return absl::OkStatus();
  };
  const bool is_static = options->job.backend == Backend::kStatic;
  std::optional<Duration> join, last_call, heartbeat, interval, total, unused;
  MUSTER_RETURN_IF_ERROR(duration("join_timeout", seconds(1), join));
  MUSTER_RETURN_IF_ERROR(duration("last_call_timeout", seconds(0), last_call));
  MUSTER_RETURN_IF_ERROR(duration("heartbeat_timeout", seconds(1), heartbeat));
  MUSTER_RETURN_IF_ERROR(duration("keep_alive_interval", seconds(0), interval));
  if (is_static) MUSTER_RETURN_IF_ERROR(duration("timeout", seconds(1), total));
  if (!is_static) MUSTER_RETURN_IF_ERROR(duration("close_timeout", seconds(0), unused));
  if (!is_static) MUSTER_RETURN_IF_ERROR(duration("read_timeout", seconds(0), unused));

  int64_t attempts = 3;  // torchrun's default: dead after 3 silent intervals
  bool counted = false;
  if (auto text = conf.find("keep_alive_max_attempt"); text != conf.end()) {
    auto number = ParsePythonInt(text->second);
    counted = number && *number >= 1 && *number <= 1'000'000;
    if (counted) attempts = *number;
    if (!counted) MUSTER_RETURN_IF_ERROR(bad("keep_alive_max_attempt", "want a whole number, at least 1"));
  }
  const bool kept_alive = interval || counted;
  if (!heartbeat && kept_alive) heartbeat = std::max<Duration>(interval.value_or(seconds(5)) * attempts, seconds(1));

  rendezvous::JobOptions& job = options->job.shared;
  if (is_static) job.join_timeout = total.value_or(seconds(kStaticTimeoutSeconds));
  if (join) job.join_timeout = *join;
  if (last_call) job.last_call = *last_call;
  if (heartbeat) job.heartbeat_timeout = *heartbeat;

  if (auto text = conf.find("is_host"); text != conf.end()) {
    auto host = ParseBool(text->second);
    if (!host.ok()) MUSTER_RETURN_IF_ERROR(bad("is_host", Message(host.status())));
    if (host.ok()) options->job.is_host = *host;
  }
  if (auto text = conf.find("store_type"); text != conf.end() && Lower(text->second) != "tcp") {
    if (Lower(text->second) != "file") MUSTER_RETURN_IF_ERROR(bad("store_type", "want tcp or file"));
    if (Lower(text->second) == "file") {
      options->warnings.emplace_back("--rdzv-conf store_type=file has no meaning here; nodes meet over TCP");
    }
  }
  struct {
    std::string_view key, variable;
    std::string& into;
  } const files[] = {{"token_file", "MUSTER_TOKEN_FILE", options->job.credentials.token},
                     {"tls_cert", "MUSTER_TLS_CERT", options->job.credentials.tls_cert},
                     {"tls_key", "MUSTER_TLS_KEY", options->job.credentials.tls_key},
                     {"tls_ca", "MUSTER_TLS_CA", options->job.credentials.tls_ca}};
  for (const auto& file : files) {
    auto text = conf.find(std::string(file.key));
    file.into = text != conf.end() ? text->second : environment.Get(file.variable).value_or("");
  }
  const std::vector<std::string_view> known = Split(
      "join_timeout last_call_timeout close_timeout heartbeat_timeout keep_alive_interval keep_alive_max_attempt "
      "read_timeout timeout is_host store_type token_file tls_cert tls_key tls_ca rank",
      ' ');
  for (const auto& [key, value] : conf) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      options->warnings.push_back(
          fmt::format("{}: {}={} is not understood and has no effect", source.origin, key, value));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::agent
