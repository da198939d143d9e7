// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_target.h"

#include <algorithm>

#include "agent/workers/run_options.h"
#include "base/host_names.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr size_t kLongestName = 253;
constexpr size_t kMostPods = 4096;
constexpr std::string_view kHttp = "http://";

void AddNamespace(const std::string& name_space, std::vector<std::string>* words) {
  if (!name_space.empty()) words->push_back("--namespace=" + name_space);
}

}  // namespace

bool IsJobName(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return !text.empty() && text.size() <= kLongestName && text.front() != '-' && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), fits);
}

std::string TopTarget::Text() const {
  switch (kind) {
    case Kind::kCoordinator:
      return JoinHostPort(host, port);
    case Kind::kAgent:
      return fmt::format("{}{}", kHttp, JoinHostPort(host, port));
    case Kind::kPod:
      return "pod/" + name;
    case Kind::kTrainJob:
      return "trainjob/" + name;
    case Kind::kPyTorchJob:
      return "pytorchjob/" + name;
    case Kind::kLocalJob:
      return name;
  }
  return name;
}

std::vector<std::string> ListPodsCommand(const TopTarget& target, const std::string& name_space) {
  std::vector<std::string> words = {"kubectl", "get", "pods"};
  AddNamespace(name_space, &words);
  switch (target.kind) {
    case TopTarget::Kind::kTrainJob:
      words.push_back("--selector=jobset.sigs.k8s.io/jobset-name=" + target.name);
      break;
    case TopTarget::Kind::kPyTorchJob:
      words.push_back("--selector=training.kubeflow.org/job-name=" + target.name);
      break;
    case TopTarget::Kind::kPod:
      words.push_back("--field-selector=metadata.name=" + target.name);
      break;
    case TopTarget::Kind::kCoordinator:
    case TopTarget::Kind::kAgent:
    case TopTarget::Kind::kLocalJob:
      break;
  }
  words.push_back(
      R"(--output=jsonpath={range .items[*]}{.metadata.name}{" "}{.status.phase}{" "}{.spec.hostname}{"\n"}{end})");
  return words;
}

std::vector<TopPod> ParsePods(std::string_view listed) {
  std::vector<TopPod> pods;
  for (const std::string_view line : Split(listed, '\n')) {
    const std::vector<std::string_view> words = Words(line);
    const bool is_pod = (words.size() == 2 || words.size() == 3) && IsJobName(words[0]);
    if (!is_pod || pods.size() >= kMostPods) continue;
    const std::string_view host = words.size() == 3 ? words[2] : words[0];
    pods.push_back({std::string(words[0]), std::string(words[1]), std::string(host)});
  }
  return pods;
}

std::vector<std::string> ForwardCommand(const std::string& pod, const std::string& name_space) {
  std::vector<std::string> words = {"kubectl", "port-forward", "--address=127.0.0.1"};
  AddNamespace(name_space, &words);
  words.push_back("pod/" + pod);
  words.push_back(fmt::format(":{}", kHttpPortUnderKubernetes));
  return words;
}

std::optional<int> ForwardedPort(std::string_view line) {
  constexpr std::string_view kBegin = "Forwarding from ";
  if (!line.starts_with(kBegin)) return std::nullopt;
  line.remove_prefix(kBegin.size());
  const std::string_view address = line.substr(0, line.find(' '));
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = ParseInt(address.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  return static_cast<int>(*port);
}

}  // namespace muster::agent
