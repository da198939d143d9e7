// SPDX-License-Identifier: Apache-2.0
#include "agent/workers/numa_binding.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace muster::agent {
namespace {

constexpr std::string_view kNodes = "/sys/devices/system/node";
constexpr std::string_view kCpus = "/sys/devices/system/cpu";

struct Gpu {
  std::string address;  // PCI address, the name of a folder in /sys/bus/pci/devices
  std::string uuid;
  int node = 0;
};

class Machine {
 public:
  Machine(const HostFs& fs, const std::vector<int>& usable) : fs_(fs), usable_(usable.begin(), usable.end()) {}

  std::vector<int> Nodes() const {
    std::vector<int> nodes;
    for (const std::string& name : fs_.List(kNodes)) {
      auto number = name.starts_with("node") ? ParseInt(std::string_view(name).substr(4)) : std::nullopt;
      if (number && !NodeCpus(static_cast<int>(*number)).empty()) nodes.push_back(static_cast<int>(*number));
    }
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }
  std::vector<int> NodeCpus(int node) const {
    return Usable(fs_.ReadLine(fmt::format("{}/node{}/cpulist", kNodes, node)).value_or(""));
  }
  int Socket(int cpu) const { return Number(fmt::format("{}/cpu{}/topology/physical_package_id", kCpus, cpu)); }
  // The CPUs that share the core of `cpu`, itself included.
  std::vector<int> Siblings(int cpu) const {
    std::vector<int> cpus =
        Usable(fs_.ReadLine(fmt::format("{}/cpu{}/topology/thread_siblings_list", kCpus, cpu)).value_or(""));
    return cpus.empty() ? std::vector<int>{cpu} : cpus;
  }
  // The CPUs that share the last-level cache of `cpu`.
  std::vector<int> CacheMates(int cpu) const {
    int highest = -1;
    std::string list;
    std::string folder = fmt::format("{}/cpu{}/cache", kCpus, cpu);
    for (const std::string& name : fs_.List(folder)) {
      if (!name.starts_with("index")) continue;
      int level = Number(fmt::format("{}/{}/level", folder, name));
      if (level <= highest) continue;
      highest = level;
      list = fs_.ReadLine(fmt::format("{}/{}/shared_cpu_list", folder, name)).value_or("");
    }
    std::vector<int> cpus = Usable(list);
    return cpus.empty() ? std::vector<int>{cpu} : cpus;
  }
  // The GPUs in the order of PCI addresses, as the driver numbers them with CUDA_DEVICE_ORDER=PCI_BUS_ID.
  std::vector<Gpu> Gpus() const {
    std::vector<Gpu> gpus;
    for (const std::string& address : fs_.List("/proc/driver/nvidia/gpus")) {
      Gpu gpu{Lower(address), "", 0};
      std::string facts = fs_.Read(fmt::format("/proc/driver/nvidia/gpus/{}/information", address)).value_or("");
      for (std::string_view line : Split(facts, '\n')) {
        if (line.starts_with("GPU UUID:")) gpu.uuid = Strip(line.substr(9));
      }
      gpu.node = std::max(Number(fmt::format("/sys/bus/pci/devices/{}/numa_node", gpu.address)), 0);
      gpus.push_back(std::move(gpu));
    }
    return gpus;
  }

 private:
  int Number(const std::string& path) const {
    return static_cast<int>(ParseInt(fs_.ReadLine(path).value_or("")).value_or(-1));
  }
  std::vector<int> Usable(std::string_view list) const {
    std::vector<int> cpus;
    for (int cpu : ParseCpuList(list)) {
      if (usable_.contains(cpu)) cpus.push_back(cpu);
    }
    std::sort(cpus.begin(), cpus.end());
    return cpus;
  }

  const HostFs& fs_;
  std::set<int> usable_;
};

// The NUMA node of each local rank.
std::vector<int> NodesOfWorkers(const Machine& machine, int nproc, const std::optional<std::string>& visible_devices) {
  std::vector<int> nodes = machine.Nodes();
  std::vector<Gpu> gpus = machine.Gpus();
  std::vector<std::string_view> visible;
  if (visible_devices) visible = Split(*visible_devices, ',');
  std::vector<int> of_worker;
  for (int worker = 0; worker < nproc; ++worker) {
    const Gpu* gpu = nullptr;
    size_t place = static_cast<size_t>(worker);
    if (!visible_devices) {
      if (place < gpus.size()) gpu = &gpus[place];
    } else if (place < visible.size()) {
      std::string_view name = Strip(visible[place]);
      auto number = ParseInt(name);
      for (size_t at = 0; at < gpus.size(); ++at) {
        bool same = number ? *number == static_cast<int64_t>(at) : !name.empty() && gpus[at].uuid.starts_with(name);
        if (same) gpu = &gpus[at];
      }
    }
    size_t block = static_cast<size_t>(worker) * nodes.size() / static_cast<size_t>(nproc);
    of_worker.push_back(gpu != nullptr ? gpu->node : nodes[block]);
  }
  return of_worker;
}

std::vector<int> SocketCpus(const Machine& machine, int node) {
  std::set<int> sockets;
  for (int cpu : machine.NodeCpus(node)) sockets.insert(machine.Socket(cpu));
  std::vector<int> cpus;
  for (int other : machine.Nodes()) {
    std::vector<int> own = machine.NodeCpus(other);
    bool same = std::any_of(own.begin(), own.end(), [&](int cpu) { return sockets.contains(machine.Socket(cpu)); });
    if (same) cpus.insert(cpus.end(), own.begin(), own.end());
  }
  return cpus;
}

// Groups of the node's CPUs; each CPU is in one group, and the groups are in the order of their first CPU.
template <typename GroupOf>
std::vector<std::vector<int>> Groups(const std::vector<int>& cpus, GroupOf group_of) {
  std::vector<std::vector<int>> groups;
  std::set<int> taken;
  for (int cpu : cpus) {
    if (taken.contains(cpu)) continue;
    std::vector<int> group;
    for (int mate : group_of(cpu)) {
      if (std::find(cpus.begin(), cpus.end(), mate) != cpus.end() && taken.insert(mate).second) group.push_back(mate);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

// If the cores do not divide evenly, the first workers of a node get one core more.
std::vector<int> ExclusiveCpus(const Machine& machine, const std::vector<int>& node_cpus, int place, int sharers) {
  auto cores = Groups(node_cpus, [&](int cpu) { return machine.Siblings(cpu); });
  int count = static_cast<int>(cores.size());
  int each = count / sharers, rest = count % sharers;
  int begin = place * each + std::min(place, rest);
  int end = begin + each + (place < rest ? 1 : 0);
  std::vector<int> cpus;
  for (int core = begin; core < end; ++core) {
    cpus.insert(cpus.end(), cores[static_cast<size_t>(core)].begin(), cores[static_cast<size_t>(core)].end());
  }
  return cpus;
}

// The caches with the most usable CPUs come first, so that a cache with forbidden CPUs is taken last.
std::vector<int> CacheCpus(const Machine& machine, const std::vector<int>& node_cpus, int place) {
  auto caches = Groups(node_cpus, [&](int cpu) { return machine.CacheMates(cpu); });
  std::stable_sort(caches.begin(), caches.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return caches[static_cast<size_t>(place) % caches.size()];
}

}  // namespace

StatusOr<std::vector<int>> NumaCpus(std::string_view mode, int local_rank, int nproc,
                                    const std::vector<int>& usable_cpus,
                                    const std::optional<std::string>& visible_devices, const HostFs& fs) {
  Machine machine(fs, usable_cpus);
  auto fail = [&](std::string_view why) {
    return absl::FailedPreconditionError(fmt::format("--numa-binding={}: {}; leave the flag out", mode, why));
  };
  if (machine.Nodes().empty()) return fail(fmt::format("{} names no NUMA node with a usable CPU", kNodes));
  if (local_rank < 0 || local_rank >= nproc) return fail("the local rank is not one of this node's");
  std::vector<int> of_worker = NodesOfWorkers(machine, nproc, visible_devices);
  int node = of_worker[static_cast<size_t>(local_rank)];
  int place = 0, sharers = 0;  // among the workers of the same node
  for (int worker = 0; worker < nproc; ++worker) {
    if (of_worker[static_cast<size_t>(worker)] != node) continue;
    if (worker < local_rank) ++place;
    ++sharers;
  }
  std::vector<int> cpus = machine.NodeCpus(node);
  if (cpus.empty()) return fail(fmt::format("NUMA node {} has no CPU that this process may use", node));
  if (mode == "socket") {
    cpus = SocketCpus(machine, node);
  } else if (mode == "exclusive") {
    cpus = ExclusiveCpus(machine, cpus, place, sharers);
    if (cpus.empty()) return fail(fmt::format("NUMA node {} has fewer usable cores than workers ({})", node, sharers));
  } else if (mode == "core-complex") {
    cpus = CacheCpus(machine, cpus, place);
  } else if (mode != "node") {
    return absl::InvalidArgumentError(
        fmt::format("--numa-binding={}: choose one of node, socket, exclusive, core-complex", mode));
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

}  // namespace muster::agent
