// SPDX-License-Identifier: Apache-2.0
// The agents of a job in a cluster, through kubectl.
#include <algorithm>

#include "agent/live/top_places.h"
#include "agent/live/top_tool.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr Duration kListLimit = std::chrono::seconds(20);
constexpr size_t kMostListed = 1 << 20;  // bytes
constexpr size_t kLongestLine = 4096;

class ClusterPlaces : public AgentPlaces {
 public:
  ClusterPlaces(boost::asio::io_context& loop, TopTarget target, std::string name_space,
                std::function<void(const PodsByHost&)> pods)
      : loop_(loop), target_(std::move(target)), name_space_(std::move(name_space)), pods_(std::move(pods)) {}

  void Find(Found found) override {
    found_ = std::move(found);
    said_.clear();
    TopTool::Events events;
    events.out = [this](std::string_view piece) {
      said_ += piece.substr(0, kMostListed - std::min(kMostListed, said_.size()));
    };
    events.ended = [this](int code, const std::string& complaints) { Listed(code, complaints); };
    Run(ListPodsCommand(target_, name_space_), kListLimit, std::move(events));
  }

 private:
  void Run(std::vector<std::string> words, std::optional<Duration> limit, TopTool::Events events) {
    tool_.reset();
    auto tool = TopTool::Start(loop_, std::move(words), limit, std::move(events));
    if (!tool.ok()) return Tell(tool.status());
    tool_ = *std::move(tool);
  }

  void Tell(StatusOr<AgentPlace> place) {
    const Found found = std::exchange(found_, nullptr);
    if (found) found(std::move(place));
  }

  void Listed(int code, const std::string& complaints) {
    if (code != 0) {
      return Tell(absl::UnavailableError(fmt::format("kubectl get pods ended with {}: {}", code, complaints)));
    }
    std::vector<TopPod> pods = ParsePods(said_);
    PodsByHost by_host;
    for (const TopPod& pod : pods) {
      if (pod.phase == "Running" || !by_host.contains(pod.host_name)) by_host[pod.host_name] = pod.name;
    }
    pods_(by_host);
    const bool any = !pods.empty();
    const bool over = any && std::all_of(pods.begin(), pods.end(), [](const TopPod& pod) {
                        return pod.phase == "Succeeded" || pod.phase == "Failed";
                      });
    if (over) return Tell(AgentPlace{.ended = fmt::format("all pods of {} have ended", target_.Text())});
    std::erase_if(pods, [](const TopPod& pod) { return pod.phase != "Running"; });
    if (pods.empty()) {
      return Tell(absl::UnavailableError(any ? fmt::format("no pod of {} runs now", target_.Text())
                                             : fmt::format("there is no pod of {}{}", target_.Text(), Where())));
    }
    Forward(pods[asked_++ % pods.size()].name);
  }

  std::string Where() const { return name_space_.empty() ? "" : " in namespace " + name_space_; }

  void Forward(const std::string& pod) {
    said_.clear();
    TopTool::Events events;
    events.out = [this](std::string_view piece) { Hear(piece); };
    events.ended = [this, pod](int code, const std::string& complaints) {
      Tell(absl::UnavailableError(
          fmt::format("kubectl port-forward to pod {} ended with {}: {}", pod, code, complaints)));
    };
    Run(ForwardCommand(pod, name_space_), std::nullopt, std::move(events));
  }

  // After the port is known, kubectl's lines say nothing that is needed.
  void Hear(std::string_view piece) {
    if (!found_) return;
    said_ += piece;
    for (size_t end = said_.find('\n'); end != std::string::npos; end = said_.find('\n')) {
      const std::optional<int> port = ForwardedPort(std::string_view(said_).substr(0, end));
      said_.erase(0, end + 1);
      if (port) return Tell(AgentPlace{.host = "127.0.0.1", .port = *port});
    }
    if (said_.size() > kLongestLine) said_.clear();
  }

  boost::asio::io_context& loop_;
  const TopTarget target_;
  const std::string name_space_;
  const std::function<void(const PodsByHost&)> pods_;
  std::unique_ptr<TopTool> tool_;  // kubectl
  Found found_;
  std::string said_;
  size_t asked_ = 0;
};

}  // namespace

std::unique_ptr<AgentPlaces> AgentsInCluster(boost::asio::io_context& loop, const TopTarget& target,
                                             std::string name_space, std::function<void(const PodsByHost&)> pods) {
  return std::make_unique<ClusterPlaces>(loop, target, std::move(name_space), std::move(pods));
}

}  // namespace muster::agent
