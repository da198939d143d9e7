// One question to a container, as the kubelet puts it: httpGet, tcpSocket, exec. Loop thread only.
//
// httpGet: one GET, without a proxy; a code of 200 to 399 is a success. A redirection is one, too: it is not followed,
// unlike the kubelet's way with those to the same host. tcpSocket: a connection that opens. exec: the command ends with
// 0 (enter_container.h says what it sees); one that cannot be started is no answer (kUnknown), as in Kubernetes. What
// takes longer than the probe's timeoutSeconds has failed.
// Source: Kubernetes 1.36, pkg/probe/{http,tcp,exec}, pkg/kubelet/prober/prober.go.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/local/pod_program.h"
#include "controller/local/probe_rule.h"
#include "launcher/console.h"
#include "launcher/reaper.h"

namespace muster::controller {

struct ProbeMeans {
  boost::asio::io_context& loop;
  launcher::Reaper& reaper;
  launcher::Console& console;
  std::string address;  // of the pod
  // The words that run a command in the container; nothing: it does not run.
  std::function<std::vector<std::string>(const std::vector<std::string>& command)> words;
  std::vector<std::string> environment;  // of the container
};

// `answered` is called once, never from inside the call, unless the handle goes before.
std::shared_ptr<void> AskContainer(const ProbeMeans& means, const Probe& probe,
                                   std::function<void(ProbeAnswer)> answered);

}  // namespace muster::controller
