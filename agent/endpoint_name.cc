// SPDX-License-Identifier: Apache-2.0
#include "agent/endpoint_name.h"

#include <algorithm>
#include <utility>

#include "base/host_names.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr auto kLimit = std::chrono::seconds(3);  // of one look-up
constexpr auto kPause = std::chrono::seconds(1);

}  // namespace

bool IsFoundByItsName(const RunOptions::Job& job, const RendezvousPlace& place) {
  if (!job.in_cluster || !place.endpoint.empty() || !place.service) return false;
  if (job.shared.min_nodes == job.shared.max_nodes) return false;
  const std::string& host = job.endpoint.host;
  const size_t dot = host.find('.');
  return dot != std::string::npos && Lower(host.substr(0, dot)) == Lower(HostName());
}

// Without the hosts file: a pod's own has its full name.
EndpointName::EndpointName(boost::asio::io_context& loop, std::string host,
                           std::function<void(const std::string&)> told)
    : host_(std::move(host)), told_(std::move(told)), resolver_(loop, {.hosts_file = ""}), timer_(loop) {
  Say(fmt::format("{} has not been looked up yet", host_));
  Ask();
}

void EndpointName::Ask() {
  resolver_.Resolve(host_, kLimit, [this](StatusOr<std::vector<boost::asio::ip::address>> found) {
    const std::vector<std::string> own = LocalAddresses();
    const auto is_own = [&own](const boost::asio::ip::address& address) {
      return std::find(own.begin(), own.end(), address.to_string()) != own.end();
    };
    if (found.ok() && std::any_of(found->begin(), found->end(), is_own)) return Say("");
    Say(found.ok() ? fmt::format("{} leads to {}, and not here", host_,
                                 found->empty() ? "no address" : found->front().to_string())
                   : std::string(Message(found.status())));
    timer_.expires_after(kPause);
    timer_.async_wait([this](boost::system::error_code cancelled) {
      if (!cancelled) Ask();
    });
  });
}

void EndpointName::Say(const std::string& why_not) {
  if (std::exchange(said_, why_not) != why_not || why_not.empty()) told_(why_not);
}

}  // namespace muster::agent
