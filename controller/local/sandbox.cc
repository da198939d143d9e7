#include "controller/local/sandbox.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/text.h"

namespace muster::controller {
namespace {

namespace fs = std::filesystem;

// Devices of this machine that a container sees beside bubblewrap's own: accelerators and their networks.
constexpr std::array<std::string_view, 5> kDevices = {"nvidia", "infiniband", "dri", "kfd", "vfio"};

std::string Below(const std::string& folder, std::string_view name) {
  return folder == "/" ? fmt::format("/{}", name) : fmt::format("{}/{}", folder, name);
}

class Words {
 public:
  Words(const SandboxSpec& spec, const ListFolder& list) : spec_(spec), list_(list) {}

  std::vector<std::string> Make() {
    Add({spec_.bwrap, "--die-with-parent", "--unshare-ipc", "--unshare-uts", "--hostname", spec_.hostname});
    for (const PodMount& mount : spec_.mounts) Open(mount.target);
    Add({"--tmpfs", "/"});
    Show("/");
    AddDevices();
    Add({"--ro-bind", spec_.hosts, "/etc/hosts"});
    for (const PodMount& mount : spec_.mounts) {
      Add({mount.read_only ? "--ro-bind" : "--bind", mount.source, mount.target});
    }
    Add({"--chdir", spec_.working_directory.empty() ? "/" : spec_.working_directory, "--"});
    return std::move(words_);
  }

 private:
  void Add(std::vector<std::string> words) {
    words_.insert(words_.end(), std::make_move_iterator(words.begin()), std::make_move_iterator(words.end()));
  }

  const FolderEntry* Find(const std::string& folder, std::string_view name) {
    auto [known, is_new] = entries_.try_emplace(folder);
    if (is_new) known->second = list_(folder);
    const auto found = std::find_if(known->second.begin(), known->second.end(),
                                    [name](const FolderEntry& entry) { return entry.name == name; });
    return found == known->second.end() ? nullptr : &*found;
  }

  // Where `target` is not there, the folders above it are shown entry by entry.
  void Open(const std::string& target) {
    std::string folder = "/";
    std::vector<std::string> above = {folder};
    for (const std::string_view name : Split(std::string_view(target).substr(1), '/')) {
      if (folder == "/" && (name == "dev" || name == "proc" || name == "sys")) return;  // they are made anew, or whole
      const FolderEntry* entry = Find(folder, name);
      if (entry == nullptr || !entry->link.empty()) {
        opened_.insert(above.begin(), above.end());
        return;
      }
      folder = Below(folder, name);
      above.push_back(folder);
    }
  }

  void Show(const std::string& folder) {
    Find(folder, "");
    for (const FolderEntry& entry : entries_[folder]) {
      const std::string path = Below(folder, entry.name);
      if (path == "/dev") continue;
      if (!entry.link.empty()) {
        Add({"--symlink", entry.link, path});
      } else if (opened_.contains(path)) {
        Add({"--tmpfs", path});
        Show(path);
      } else {
        Add({"--bind-try", path, path});
      }
    }
  }

  void AddDevices() {
    Add({"--dev", "/dev"});
    Find("/dev", "");
    for (const FolderEntry& entry : entries_["/dev"]) {
      const bool shown = std::any_of(kDevices.begin(), kDevices.end(),
                                     [&entry](std::string_view name) { return entry.name.starts_with(name); });
      if (shown) Add({"--dev-bind", Below("/dev", entry.name), Below("/dev", entry.name)});
    }
  }

  const SandboxSpec& spec_;
  const ListFolder& list_;
  std::vector<std::string> words_;
  std::map<std::string, std::vector<FolderEntry>> entries_;
  std::set<std::string> opened_;
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

}  // namespace muster::controller
