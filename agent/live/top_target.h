// SPDX-License-Identifier: Apache-2.0
// What `muster top TARGET` names, and what kubectl says about it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

struct TopTarget {
  enum class Kind {
    kCoordinator,  // HOST[:PORT] of the rendezvous
    kAgent,        // http://HOST:PORT of an agent's HTTP port
    kPod,          // pod/NAME
    kTrainJob,     // trainjob/NAME
    kPyTorchJob,   // pytorchjob/NAME
    kLocalJob,     // NAME of a job of `muster local`
  };
  Kind kind = Kind::kCoordinator;
  std::string host;  // kCoordinator and kAgent; without brackets
  int port = 0;
  std::string name;  // of the others

  bool in_cluster() const { return kind == Kind::kPod || kind == Kind::kTrainJob || kind == Kind::kPyTorchJob; }
  // "127.0.0.1:29400", "http://10.0.0.7:29480", "trainjob/digits", "hello".
  std::string Text() const;
  bool operator==(const TopTarget&) const = default;
};

// Whether `text` can be the name of a job: a word of letters, digits, '-' and '.'.
bool IsJobName(std::string_view text);

// A pod of the target, as kubectl lists it.
struct TopPod {
  std::string name, phase, host_name;
  bool operator==(const TopPod&) const = default;
};
// The words of kubectl that lists the pods of a target in the cluster. `name_space`: empty: kubectl's own.
std::vector<std::string> ListPodsCommand(const TopTarget& target, const std::string& name_space);
// What it prints. Lines that are none are skipped; at most 4096 pods.
std::vector<TopPod> ParsePods(std::string_view listed);
// The words that forward a port, which the kernel chooses, to the pod's HTTP port.
std::vector<std::string> ForwardCommand(const std::string& pod, const std::string& name_space);
// The port, of a line that kubectl port-forward prints; nullopt: the line does not say it.
std::optional<int> ForwardedPort(std::string_view line);

}  // namespace muster::agent
