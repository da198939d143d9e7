// SPDX-License-Identifier: Apache-2.0
// Runs one probe of a container once, as the kubelet does: httpGet, tcpSocket, exec. Loop thread only.
//
// httpGet: one GET, without a proxy; a status code of 200 to 399 is a success. A redirect is a success and is not
// followed; the kubelet follows redirects to the same host. tcpSocket: success if the connection opens. exec: success
// if the command ends with 0 (enter_container.h says what the command sees). A command that cannot be started gives
// kUnknown, as in Kubernetes. A probe that takes longer than its timeoutSeconds has failed.
// Source: Kubernetes 1.36, pkg/probe/{http,tcp,exec}, pkg/kubelet/prober/prober.go.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/console.h"
#include "launcher/reaper.h"
#include "local/pod/probe_rule.h"
#include "local/pod/program.h"

namespace muster::local {

struct ProbeContext {
  boost::asio::io_context& loop;
  launcher::Reaper& reaper;
  launcher::Console& console;
  std::string address;  // of the pod
  // The words that run a command in the container; empty: the container does not run.
  std::function<std::vector<std::string>(const std::vector<std::string>& command)> words;
  std::vector<std::string> environment;  // of the container
};

// Calls `answered` once, never from inside this call, and not after the returned handle is destroyed.
std::shared_ptr<void> AskContainer(const ProbeContext& context, const Probe& probe,
                                   std::function<void(ProbeAnswer)> answered);

}  // namespace muster::local
