// SPDX-License-Identifier: Apache-2.0
#include "base/host_facts.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <vector>

#include "base/text.h"

namespace muster {
namespace {

constexpr int64_t kUnlimitedV1 = int64_t{1} << 60;  // cgroup v1 writes "no limit" as a huge number

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Reads leading digits, as CUDA reads an ordinal by strtoul: "1gpu2" is 1. No digits: -1.
int64_t LeadingNumber(std::string_view text) {
  size_t digits = text.find_first_not_of("0123456789");
  std::string_view number = text.substr(0, digits);
  return ParseInt(number).value_or(-1);
}

// Counts the names of a comma-separated list up to the first for which `good` gives nullopt. 0 if a key occurs twice.
template <typename Good>
int CountList(std::string_view text, Good good) {
  std::set<std::string> seen;
  for (std::string_view part : Split(text, ',')) {
    part = Strip(part);
    std::optional<std::string> key = good(part);
    if (!key) break;
    if (!seen.insert(*key).second) return 0;
  }
  return static_cast<int>(seen.size());
}

int CountOrdinals(std::string_view text, int present) {
  return CountList(text, [&](std::string_view part) -> std::optional<std::string> {
    int64_t ordinal = LeadingNumber(part);
    if (ordinal < 0 || ordinal >= present) return std::nullopt;
    return std::to_string(ordinal);
  });
}

// ---- cgroups ----

// Folders of this process's cgroup and its ancestors for a controller, up to the root. `v2`: the unified hierarchy.
std::vector<std::string> CgroupFolders(const HostFs& fs, std::string_view controller, bool v2) {
  std::string mount = v2 ? "/sys/fs/cgroup" : fmt::format("/sys/fs/cgroup/{}", controller);
  std::string path;
  std::string table = fs.Read("/proc/self/cgroup").value_or("");
  for (std::string_view line : Split(table, '\n')) {
    size_t first = line.find(':');
    size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::vector<std::string_view> names = Split(controllers, ',');
    bool mine = v2 ? controllers.empty() : std::find(names.begin(), names.end(), controller) != names.end();
    if (mine) path = line.substr(second + 1);
  }
  std::vector<std::string> folders;
  // In a container without a cgroup namespace the path is the host's. Only the last folder, the mount point, is here.
  while (!path.empty() && path != "/") {
    folders.push_back(mount + path);
    path.erase(path.rfind('/'));
  }
  folders.push_back(mount);
  return folders;
}

void TakeLess(std::optional<double>& least, double value) {
  if (!least || value < *least) least = value;
}

std::optional<double> CpuQuota(const HostFs& fs) {
  std::optional<double> least;
  for (const std::string& folder : CgroupFolders(fs, "cpu", true)) {
    std::string text = fs.ReadLine(folder + "/cpu.max").value_or("max");
    size_t blank = text.find(' ');
    auto quota = ParseDouble(std::string_view(text).substr(0, blank));
    double period = blank == std::string::npos ? 100000 : ParseDouble(text.substr(blank + 1)).value_or(0);
    if (quota && *quota > 0 && period > 0) TakeLess(least, *quota / period);
  }
  for (const std::string& folder : CgroupFolders(fs, "cpu", false)) {
    auto quota = ParseDouble(fs.ReadLine(folder + "/cpu.cfs_quota_us").value_or(""));
    auto period = ParseDouble(fs.ReadLine(folder + "/cpu.cfs_period_us").value_or("100000"));
    if (quota && *quota > 0 && period && *period > 0) TakeLess(least, *quota / *period);
  }
  return least;
}

std::optional<int64_t> MemoryLimit(const HostFs& fs) {
  std::optional<int64_t> least;
  auto consider = [&](const std::string& path) {
    auto limit = ParseInt(fs.ReadLine(path).value_or("max"));
    if (limit && *limit > 0 && *limit < kUnlimitedV1 && (!least || *limit < *least)) least = *limit;
  };
  for (const std::string& folder : CgroupFolders(fs, "memory", true)) consider(folder + "/memory.max");
  for (const std::string& folder : CgroupFolders(fs, "memory", false)) consider(folder + "/memory.limit_in_bytes");
  return least;
}

// The number after `name` in a table of lines "name number"; nullopt: no such line.
std::optional<int64_t> InTable(const HostFs& fs, const std::string& path, std::string_view name) {
  const std::string table = fs.Read(path).value_or("");
  for (std::string_view line : Split(table, '\n')) {
    if (line.starts_with(name)) return LeadingNumber(Strip(line.substr(name.size())));
  }
  return std::nullopt;
}

int64_t MemoryTotal(const HostFs& fs) { return InTable(fs, "/proc/meminfo", "MemTotal:").value_or(0) * 1024; }

// What is left below the limit of one cgroup; nullopt: it has none. `dropped`: the line of memory.stat with the pages
// of files that the kernel drops first.
std::optional<int64_t> LeftInCgroup(const HostFs& fs, const std::string& folder, std::string_view limit,
                                    std::string_view usage, std::string_view dropped) {
  const auto most = ParseInt(fs.ReadLine(fmt::format("{}/{}", folder, limit)).value_or("max"));
  const auto used = ParseInt(fs.ReadLine(fmt::format("{}/{}", folder, usage)).value_or(""));
  if (!most || !used || *most >= kUnlimitedV1) return std::nullopt;
  return *most - *used + InTable(fs, folder + "/memory.stat", dropped).value_or(0);
}

// ---- accelerators ----

// Counts the /dev/dri/renderD* of `vendor`.
int RenderNodes(const HostFs& fs, std::string_view vendor) {
  int count = 0;
  for (const std::string& name : fs.List("/dev/dri")) {
    if (!name.starts_with("renderD")) continue;
    if (fs.ReadLine(fmt::format("/sys/class/drm/{}/device/vendor", name)) == vendor) ++count;
  }
  return count;
}

DeviceCount Nvidia(const HostFs& fs, const Environment& environment) {
  int present = 0;
  for (const std::string& name : fs.List("/dev")) {
    if (name.starts_with("nvidia") && IsNumber(std::string_view(name).substr(6))) ++present;
  }
  DeviceCount found{present, fmt::format("{} in /dev/nvidia*", present)};
  if (auto given = environment.Get("NVIDIA_VISIBLE_DEVICES"); given && (*given == "void" || *given == "none")) {
    found.count = 0;
    found.looked_at += fmt::format(", NVIDIA_VISIBLE_DEVICES={} leaves none", *given);
    return found;
  }
  if (auto mask = environment.Get("CUDA_VISIBLE_DEVICES")) {
    found.count = VisibleCudaDevices(mask, present);
    found.looked_at += fmt::format(", CUDA_VISIBLE_DEVICES={} leaves {}", *mask, found.count);
  }
  return found;
}

// ROCR_VISIBLE_DEVICES selects first. HIP_VISIBLE_DEVICES (or CUDA_VISIBLE_DEVICES) selects among the devices left.
DeviceCount Amd(const HostFs& fs, const Environment& environment) {
  int present = fs.Exists("/dev/kfd") ? RenderNodes(fs, "0x1002") : 0;
  DeviceCount found{present, fmt::format("{} AMD in /dev/kfd and /dev/dri", present)};
  auto narrow = [&](std::string_view name) {
    auto mask = environment.Get(name);
    if (!mask) return false;
    found.count = VisibleCudaDevices(mask, found.count);
    found.looked_at += fmt::format(", {}={} leaves {}", name, *mask, found.count);
    return true;
  };
  if (present == 0) return found;
  narrow("ROCR_VISIBLE_DEVICES");
  if (!narrow("HIP_VISIBLE_DEVICES")) narrow("CUDA_VISIBLE_DEVICES");
  return found;
}

// ZE_AFFINITY_MASK: "0,1" devices, "0.0,0.1" tiles. Devices that are not present do not count.
DeviceCount Xpu(const HostFs& fs, const Environment& environment) {
  int present = RenderNodes(fs, "0x8086");
  DeviceCount found{present, fmt::format("{} Intel in /dev/dri", present)};
  if (auto mask = environment.Get("ZE_AFFINITY_MASK"); mask && !Strip(*mask).empty()) {
    std::set<std::string_view> kept;
    for (std::string_view part : Split(*mask, ',')) {
      int64_t device = LeadingNumber(Strip(part));
      if (device >= 0 && device < present) kept.insert(Strip(part));
    }
    found.count = static_cast<int>(kept.size());
    found.looked_at += fmt::format(", ZE_AFFINITY_MASK={} leaves {}", *mask, found.count);
  }
  return found;
}

}  // namespace

std::vector<int> UsableCpus() {
  // The kernel answers EINVAL if the set is too small for the machine: try larger ones.
  for (int size = 1024; size <= (1 << 20); size *= 2) {
    cpu_set_t* set = CPU_ALLOC(size);
    if (set == nullptr) break;
    std::vector<int> cpus;
    bool known = sched_getaffinity(0, CPU_ALLOC_SIZE(size), set) == 0;
    for (int cpu = 0; known && cpu < size; ++cpu) {
      if (CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(size), set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (known) return cpus;
  }
  return {0};
}

HostFacts ReadHostFacts(const HostFs& fs, const Environment& environment, int usable_cpus) {
  HostFacts facts;
  facts.cpus = std::max(usable_cpus, 1);
  facts.cpu_quota = CpuQuota(fs);
  facts.memory_limit = MemoryLimit(fs);
  facts.memory_total = MemoryTotal(fs);
  facts.nvidia = Nvidia(fs, environment);
  facts.amd = Amd(fs, environment);
  facts.xpu = Xpu(fs, environment);
  facts.xpu_asked_for = !Strip(environment.Get("ZE_AFFINITY_MASK").value_or("")).empty();
  return facts;
}

HostFacts ReadHostFacts() {
  return ReadHostFacts(HostFs(), Environment::OfProcess(), static_cast<int>(UsableCpus().size()));
}

std::optional<int64_t> FreeMemory(const HostFs& fs) {
  std::optional<int64_t> least;
  const auto consider = [&](std::optional<int64_t> left) {
    if (left && (!least || *left < *least)) least = std::max<int64_t>(*left, 0);
  };
  if (auto available = InTable(fs, "/proc/meminfo", "MemAvailable:")) consider(*available * 1024);
  for (const std::string& folder : CgroupFolders(fs, "memory", true)) {
    consider(LeftInCgroup(fs, folder, "memory.max", "memory.current", "inactive_file "));
  }
  for (const std::string& folder : CgroupFolders(fs, "memory", false)) {
    consider(LeftInCgroup(fs, folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "));
  }
  return least;
}

std::optional<int64_t> PrivateMemory(int64_t pid, const HostFs& fs) {
  const std::string table = fmt::format("/proc/{}/smaps_rollup", pid);
  const auto clean = InTable(fs, table, "Private_Clean:"), dirty = InTable(fs, table, "Private_Dirty:");
  if (!clean || !dirty) return std::nullopt;
  return (*clean + *dirty) * 1024;
}

int ContainerCpus(const HostFacts& facts) {
  const double quota = std::ceil(std::max(1.0, facts.cpu_quota.value_or(facts.cpus)));
  return static_cast<int>(std::min<double>(facts.cpus, quota));
}

int VisibleCudaDevices(const std::optional<std::string>& text, int present) {
  if (!text) return present;
  std::string_view list = Strip(*text);
  if (list.starts_with("MIG-")) return present > 0 ? 1 : 0;
  if (list.starts_with("GPU-")) {
    int named = CountList(list, [](std::string_view part) -> std::optional<std::string> {
      if (!part.starts_with("GPU-")) return std::nullopt;
      return std::string(part);
    });
    return std::min(named, present);
  }
  return CountOrdinals(list, present);
}

StatusOr<WorkerCount> ResolveNproc(std::string_view text, const HostFacts& facts, std::string_view origin) {
  text = Strip(text);
  const std::string gpu_search = fmt::format("{}; {}", facts.nvidia.looked_at, facts.amd.looked_at);
  if (auto number = ParseInt(text)) {
    if (*number < 1 || *number > 100'000) {
      return absl::InvalidArgumentError(fmt::format("{}={}: want at least 1 and at most 100000", origin, text));
    }
    WorkerCount workers{static_cast<int>(*number), ""};
    if (facts.gpus() > 0 && workers.count > facts.gpus()) {
      workers.warning = fmt::format("{}={}: there are only {} GPUs ({}); workers will share them", origin,
                                    workers.count, facts.gpus(), gpu_search);
    }
    return workers;
  }
  if (text == "cpu") return WorkerCount{facts.cpus, ""};
  if (text == "gpu") {
    if (facts.gpus() > 0) return WorkerCount{facts.gpus(), ""};
    return absl::InvalidArgumentError(fmt::format(
        "{}=gpu: no GPU was found ({}); give a number, cpu or auto, or make the devices visible", origin, gpu_search));
  }
  if (text == "xpu") {
    if (facts.xpu.count > 0) return WorkerCount{facts.xpu.count, ""};
    return absl::InvalidArgumentError(
        fmt::format("{}=xpu: no Intel GPU was found ({}); give a number, cpu or auto", origin, facts.xpu.looked_at));
  }
  if (text == "auto") {
    if (facts.gpus() > 0) return WorkerCount{facts.gpus(), ""};
    if (facts.xpu_asked_for && facts.xpu.count > 0) return WorkerCount{facts.xpu.count, ""};
    return WorkerCount{facts.cpus, ""};
  }
  return absl::InvalidArgumentError(
      fmt::format("{}={}: want a number of workers, auto, cpu, gpu or xpu", origin, text));
}

}  // namespace muster
