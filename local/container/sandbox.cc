// SPDX-License-Identifier: Apache-2.0
#include "local/container/sandbox.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/text.h"

namespace muster::local {
namespace {

namespace fs = std::filesystem;

// Devices of this machine that a container sees in addition to bubblewrap's: accelerators and their networks.
constexpr std::array<std::string_view, 5> kDevices = {"nvidia", "infiniband", "dri", "kfd", "vfio"};
// Folders that are empty and the container's own, if it has the root of an image.
constexpr std::array<std::string_view, 3> kEmptied = {"/tmp", "/run", "/var/tmp"};
constexpr char kResolver[] = "/etc/resolv.conf";
constexpr int kMostLinks = 40;  // symbolic links on the way to one target, Linux's limit

std::string Below(const std::string& folder, std::string_view name) {
  return folder == "/" ? fmt::format("/{}", name) : fmt::format("{}/{}", folder, name);
}

class Words {
 public:
  Words(const SandboxSpec& spec, const ListFolder& list) : spec_(spec), list_(list) {}

  std::vector<std::string> Make() {
    Add({spec_.bwrap, "--die-with-parent", "--unshare-ipc", "--unshare-uts", "--hostname", spec_.hostname});
    if (spec_.own_pids) Add({"--unshare-pid"});
    std::vector<PodMount> mounts = spec_.files;
    if (!spec_.root.empty() && NeedsResolver()) {
      mounts.push_back({.source = kResolver, .target = kResolver, .read_only = true});
    }
    mounts.insert(mounts.end(), spec_.mounts.begin(), spec_.mounts.end());
    for (PodMount& mount : mounts) {
      mount.target = Open(mount.target);
      places_.insert(mount.target);
    }
    // A mount inside another one comes after it.
    std::stable_sort(mounts.begin(), mounts.end(), [](const auto& a, const auto& b) { return a.target < b.target; });
    Add({"--tmpfs", "/"});
    Show("/");
    AddDevices();
    if (spec_.own_pids) Add({"--proc", "/proc"});
    if (!spec_.root.empty()) AddWhatNoImageHas();
    for (const PodMount& mount : mounts) Add(WordsOf(mount));
    Add({"--chdir", spec_.working_directory.empty() ? "/" : spec_.working_directory, "--"});
    return std::move(words_);
  }

 private:
  void Add(std::vector<std::string> words) {
    words_.insert(words_.end(), std::make_move_iterator(words.begin()), std::make_move_iterator(words.end()));
  }

  static std::vector<std::string> WordsOf(const PodMount& mount) {
    if (!mount.in_memory) return {mount.read_only ? "--ro-bind" : "--bind", mount.source, mount.target};
    std::vector<std::string> words = {"--perms", "0777"};
    if (mount.bytes) words.insert(words.end(), {"--size", std::to_string(*mount.bytes)});
    words.insert(words.end(), {"--tmpfs", mount.target});
    if (mount.read_only) words.insert(words.end(), {"--remount-ro", mount.target});
    return words;
  }

  const FolderEntry* Find(const std::string& folder, std::string_view name) {
    auto [known, is_new] = entries_.try_emplace(folder);
    if (is_new) known->second = list_(InRoot(folder));
    const auto found = std::find_if(known->second.begin(), known->second.end(),
                                    [name](const FolderEntry& entry) { return entry.name == name; });
    return found == known->second.end() ? nullptr : &*found;
  }

  // The path of `target` without symbolic links, which bubblewrap would follow out of the container's root. If nothing
  // is there, the folders above it are marked to be shown entry by entry.
  std::string Open(const std::string& target) {
    std::string folder = "/";
    std::vector<std::string> left;  // the next name is the last one
    PutBefore(target, &left);
    for (int links = 0; !left.empty();) {
      const std::string name = left.back();
      // Made by bubblewrap, shown as a whole, or below another mount.
      const bool is_other = folder == "/" && (name == "dev" || name == "proc" || name == "sys");
      if (is_other || IsEmptied(Below(folder, name)) || places_.contains(folder)) break;
      if (name == "..") {
        left.pop_back();
        folder = fs::path(folder).parent_path().string();
        continue;
      }
      const FolderEntry* entry = Find(folder, name);
      if (entry == nullptr) OpenDownTo(folder);
      if (entry == nullptr || (entry->link.empty() && !entry->is_folder) || links == kMostLinks) break;
      left.pop_back();
      if (entry->link.empty()) {
        folder = Below(folder, name);
        continue;
      }
      ++links;
      if (entry->link.front() == '/') folder.resize(1);
      PutBefore(entry->link, &left);
    }
    for (; !left.empty(); left.pop_back()) folder = Below(folder, left.back());
    return folder;
  }

  static void PutBefore(const std::string& path, std::vector<std::string>* left) {
    const auto names = Split(path, '/');
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      if (!name->empty() && *name != ".") left->emplace_back(*name);
    }
  }

  void OpenDownTo(const fs::path& folder) {
    opened_.insert(folder.string());
    if (folder != folder.parent_path()) OpenDownTo(folder.parent_path());
  }

  void Show(const std::string& folder) {
    Find(folder, "");
    for (const FolderEntry& entry : entries_[folder]) {
      const std::string path = Below(folder, entry.name);
      const bool is_made = IsEmptied(path) || (!spec_.root.empty() && (path == "/proc" || path == "/sys")) ||
                           (spec_.own_pids && path == "/proc");
      if (path == "/dev" || is_made) continue;
      if (!entry.link.empty()) {
        Add({"--symlink", entry.link, path});
      } else if (opened_.contains(path)) {
        Add({"--tmpfs", path});
        Show(path);
      } else {
        Add({spec_.root.empty() ? "--bind-try" : "--ro-bind-try", InRoot(path), path});
      }
    }
  }

  void AddDevices() {
    Add({"--dev", "/dev"});
    for (const FolderEntry& entry : list_("/dev")) {
      const bool shown = std::any_of(kDevices.begin(), kDevices.end(),
                                     [&entry](std::string_view name) { return entry.name.starts_with(name); });
      if (shown) Add({"--dev-bind", Below("/dev", entry.name), Below("/dev", entry.name)});
    }
  }

  std::string InRoot(const std::string& path) const {
    return spec_.root.empty() ? path : path == "/" ? spec_.root : spec_.root + path;
  }

  bool NeedsResolver() const {
    const auto is_resolver = [](const PodMount& mount) { return mount.target == kResolver; };
    if (std::any_of(spec_.files.begin(), spec_.files.end(), is_resolver)) return false;
    const std::vector<FolderEntry> entries = list_("/etc");
    return std::any_of(entries.begin(), entries.end(), [](const auto& entry) { return entry.name == "resolv.conf"; });
  }

  bool IsEmptied(std::string_view path) const {
    return !spec_.root.empty() && std::find(kEmptied.begin(), kEmptied.end(), path) != kEmptied.end();
  }

  void AddWhatNoImageHas() {
    if (!spec_.own_pids) Add({"--bind", "/proc", "/proc"});
    Add({"--ro-bind-try", "/sys", "/sys"});
    for (const std::string_view folder : kEmptied) {
      const fs::path path(folder);
      const bool is_top = path.parent_path() == "/";
      const FolderEntry* entry = Find(path.parent_path().string(), path.filename().string());
      // A missing folder can be made at the top alone: all other parents are read-only.
      if (is_top || (entry != nullptr && entry->is_folder)) Add({"--tmpfs", std::string(folder)});
    }
  }

  const SandboxSpec& spec_;
  const ListFolder& list_;
  std::vector<std::string> words_;
  std::map<std::string, std::vector<FolderEntry>> entries_;
  std::set<std::string> opened_;  // folders that are shown entry by entry
  std::set<std::string> places_;  // of mounts
};

}  // namespace

std::vector<FolderEntry> ListRealFolder(const std::string& path) {
  std::vector<FolderEntry> entries;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    FolderEntry entry{.name = it->path().filename().string()};
    std::error_code ignored;
    if (it->is_symlink(ignored)) {
      entry.link = fs::read_symlink(it->path(), ignored).string();
    } else {
      entry.is_folder = it->is_directory(ignored);
    }
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

std::vector<std::string> SandboxWords(const SandboxSpec& spec, const ListFolder& list) {
  return Words(spec, list).Make();
}

}  // namespace muster::local
