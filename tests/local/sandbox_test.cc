// SPDX-License-Identifier: Apache-2.0
// The words before a command, on a machine with few folders.
#include "local/container/sandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/text.h"

namespace muster::local {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;

FolderEntry Folder(const char* name) { return {.name = name, .is_folder = true}; }
FolderEntry File(const char* name) { return {.name = name}; }
FolderEntry Link(const char* name, const char* to) { return {.name = name, .link = to}; }

std::vector<FolderEntry> ListHere(const std::string& path) {
  static const auto* const kFolders = new std::map<std::string, std::vector<FolderEntry>>{
      {"/",
       {Link("bin", "usr/bin"), Folder("dev"), Folder("etc"), Link("loop", "loop"), Link("lost", "/none/x"),
        Folder("proc"), Folder("run"), Folder("srv"), Folder("usr"), Folder("var")}},
      {"/dev", {File("kfd"), File("nvidia0"), File("null"), Folder("shm")}},
      {"/etc", {File("hosts"), File("passwd")}},
      {"/run", {Folder("lock")}},
      {"/srv", {Folder("a"), File("b")}},
      {"/srv/a", {Folder("deep")}},
      {"/usr", {Folder("bin")}},
      {"/usr/bin", {File("sh")}},
      {"/var", {Link("back", "../srv/./a"), Folder("lib"), Link("run", "/run")}},
  };
  const auto found = kFolders->find(path);
  return found == kFolders->end() ? std::vector<FolderEntry>() : found->second;
}

std::vector<std::string> WordsFor(std::vector<PodMount> mounts, const ListFolder& list = ListHere) {
  return SandboxWords(
      {.bwrap = "/b/bwrap", .hostname = "train-0", .files = {{"/h", "/etc/hosts", true}}, .mounts = std::move(mounts)},
      list);
}

// The options with their arguments, one option a line, from the root to the one before --chdir.
std::vector<std::string> LinesFor(std::vector<PodMount> mounts, const ListFolder& list = ListHere) {
  std::vector<std::string> lines;
  bool is_in = false;
  for (const std::string& word : WordsFor(std::move(mounts), list)) {
    if (word == "--tmpfs") is_in = true;
    if (word == "--chdir") break;
    if (!is_in) continue;
    if (word.starts_with("--")) {
      lines.push_back(word.substr(2));
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

const std::vector<std::string> kRoot = {"tmpfs /",
                                        "symlink usr/bin /bin",
                                        "bind-try /etc /etc",
                                        "symlink loop /loop",
                                        "symlink /none/x /lost",
                                        "bind-try /proc /proc",
                                        "bind-try /run /run",
                                        "bind-try /srv /srv",
                                        "bind-try /usr /usr",
                                        "bind-try /var /var"};
const std::vector<std::string> kDevices = {"dev /dev", "dev-bind /dev/kfd /dev/kfd",
                                           "dev-bind /dev/nvidia0 /dev/nvidia0"};

// The lines that are expected if `shown` replaces entries of kRoot, with these mounts.
std::vector<std::string> Expected(std::map<std::string, std::vector<std::string>> shown,
                                  std::vector<std::string> mounts) {
  std::vector<std::string> lines;
  for (const std::string& line : kRoot) {
    const auto other = shown.find(line.substr(line.rfind(' ') + 1));
    if (other == shown.end() || line == "tmpfs /") {
      lines.push_back(line);
    } else {
      lines.insert(lines.end(), other->second.begin(), other->second.end());
    }
  }
  lines.insert(lines.end(), kDevices.begin(), kDevices.end());
  lines.insert(lines.end(), mounts.begin(), mounts.end());
  return lines;
}

TEST(Sandbox, WithoutMountsItHasOnlyTheHostsFile) {
  EXPECT_THAT(LinesFor({}), ElementsAreArray(Expected({}, {"ro-bind /h /etc/hosts"})));
  const std::vector<std::string> words = WordsFor({});
  EXPECT_THAT(std::vector<std::string>(words.begin(), words.begin() + 6),
              ElementsAre("/b/bwrap", "--die-with-parent", "--unshare-ipc", "--unshare-uts", "--hostname", "train-0"));
  EXPECT_THAT(std::vector<std::string>(words.end() - 3, words.end()), ElementsAre("--chdir", "/", "--"));
}

TEST(Sandbox, AVolumeInMemoryIsATmpfs) {
  EXPECT_THAT(LinesFor({{.target = "/dev/shm", .in_memory = true, .bytes = 4096},
                        {.target = "/srv/a", .read_only = true, .in_memory = true}}),
              ElementsAreArray(Expected({}, {"perms 0777", "size 4096", "tmpfs /dev/shm", "ro-bind /h /etc/hosts",
                                             "perms 0777", "tmpfs /srv/a", "remount-ro /srv/a"})));
}

TEST(Sandbox, StartsInItsWorkingDirectory) {
  const auto words =
      SandboxWords({.bwrap = "b", .files = {{"/h", "/etc/hosts", true}}, .working_directory = "/srv/a"}, ListHere);
  EXPECT_THAT(std::vector<std::string>(words.end() - 3, words.end()), ElementsAre("--chdir", "/srv/a", "--"));
}

TEST(Sandbox, EachMountHasItsTarget) {
  const std::vector<std::string> etc = {"tmpfs /etc", "bind-try /etc/hosts /etc/hosts",
                                        "bind-try /etc/passwd /etc/passwd"};
  const std::vector<std::string> srv = {"tmpfs /srv", "bind-try /srv/a /srv/a", "bind-try /srv/b /srv/b"};
  const std::vector<std::string> deep = {"tmpfs /srv", "tmpfs /srv/a", "bind-try /srv/a/deep /srv/a/deep",
                                         "bind-try /srv/b /srv/b"};
  const std::vector<std::string> run = {"tmpfs /run", "bind-try /run/lock /run/lock"};
  const std::vector<std::string> bin = {"tmpfs /usr", "tmpfs /usr/bin", "bind-try /usr/bin/sh /usr/bin/sh"};
  const std::string hosts = "ro-bind /h /etc/hosts";
  struct Row {
    const char* what;
    std::vector<PodMount> mounts;
    std::vector<std::string> lines;
  };
  for (const Row& row : std::vector<Row>{
           {"a folder that is there", {{"/v", "/srv/a"}}, Expected({}, {hosts, "bind /v /srv/a"})},
           {"a file that is there", {{"/v", "/srv/b"}}, Expected({}, {hosts, "bind /v /srv/b"})},
           {"read-only", {{"/v", "/srv/a", true}}, Expected({}, {hosts, "ro-bind /v /srv/a"})},
           {"not there, at the root", {{"/v", "/data"}}, Expected({}, {"bind /v /data", hosts})},
           {"not there, below a missing one", {{"/v", "/data/x/y"}}, Expected({}, {"bind /v /data/x/y", hosts})},
           {"one level down", {{"/v", "/srv/x"}}, Expected({{"/srv", srv}}, {hosts, "bind /v /srv/x"})},
           {"two levels down", {{"/v", "/srv/a/x"}}, Expected({{"/srv", deep}}, {hosts, "bind /v /srv/a/x"})},
           {"in /etc", {{"/v", "/etc/a.conf"}}, Expected({{"/etc", etc}}, {"bind /v /etc/a.conf", hosts})},
           {"below a file", {{"/v", "/etc/passwd/x"}}, Expected({}, {hosts, "bind /v /etc/passwd/x"})},
           {"in /dev", {{"/v", "/dev/termination-log"}}, Expected({}, {"bind /v /dev/termination-log", hosts})},
           {"in /proc", {{"/v", "/proc/x"}}, Expected({}, {hosts, "bind /v /proc/x"})},
           {"there, below a link", {{"/v", "/var/run/lock"}}, Expected({}, {hosts, "bind /v /run/lock"})},
           {"not there, below a link", {{"/v", "/var/run/x"}}, Expected({{"/run", run}}, {hosts, "bind /v /run/x"})},
           {"below a link to beside it", {{"/v", "/bin/x"}}, Expected({{"/usr", bin}}, {hosts, "bind /v /usr/bin/x"})},
           {"below a link upwards", {{"/v", "/var/back/deep"}}, Expected({}, {hosts, "bind /v /srv/a/deep"})},
           {"a link itself", {{"/v", "/var/run"}}, Expected({}, {hosts, "bind /v /run"})},
           {"a link to nothing", {{"/v", "/lost/y"}}, Expected({}, {hosts, "bind /v /none/x/y"})},
           {"one inside the other",
            {{"/v", "/d"}, {"/w", "/d/x"}},
            Expected({}, {"bind /v /d", "bind /w /d/x", hosts})},
           {"inside one that is there",
            {{"/v", "/srv"}, {"/w", "/srv/x"}},
            Expected({}, {hosts, "bind /v /srv", "bind /w /srv/x"})},
           {"by a link inside the other",
            {{"/w", "/bin/x"}, {"/v", "/usr"}},
            Expected({{"/usr", bin}}, {hosts, "bind /v /usr", "bind /w /usr/bin/x"})},
           {"over /etc", {{"/v", "/etc"}}, Expected({}, {"bind /v /etc", hosts})},
           {"over /etc/hosts", {{"/v", "/etc/hosts"}}, Expected({}, {hosts, "bind /v /etc/hosts"})},
       }) {
    EXPECT_EQ(LinesFor(row.mounts), row.lines) << row.what;
  }
}

TEST(Sandbox, ALinkToItselfComesToAnEnd) { EXPECT_THAT(LinesFor({{"/v", "/loop/x"}}), Contains("bind /v /loop/x")); }

TEST(Sandbox, HostsAreNotMadeInThisMachinesEtc) {
  const auto lines = LinesFor({}, [](const std::string& path) {
    return path == "/" ? std::vector<FolderEntry>{Folder("etc")} : std::vector<FolderEntry>();
  });
  EXPECT_THAT(lines, ElementsAre("tmpfs /", "tmpfs /etc", "dev /dev", "ro-bind /h /etc/hosts"));
}

TEST(Sandbox, AFolderIsListedWithItsLinks) {
  std::string path = testing::TempDir() + "sandbox-XXXXXX";
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  std::filesystem::create_directory(path + "/b");
  std::ofstream(path + "/c") << "x";
  std::filesystem::create_symlink("b", path + "/a");
  const auto is = [](const char* name, const char* link, bool is_folder) {
    return AllOf(Field(&FolderEntry::name, name), Field(&FolderEntry::link, link),
                 Field(&FolderEntry::is_folder, is_folder));
  };
  EXPECT_THAT(ListRealFolder(path), ElementsAre(is("a", "b", false), is("b", "", true), is("c", "", false)));
  EXPECT_THAT(ListRealFolder(path + "/c"), IsEmpty());
  EXPECT_THAT(ListRealFolder(path + "/none"), IsEmpty());
  std::filesystem::remove_all(path);
}

// The image has /srv and a link to /run; /etc/resolv.conf is this machine's.
TEST(Sandbox, AnImagesRootHasItsOwnFolders) {
  const auto list = [](const std::string& path) -> std::vector<FolderEntry> {
    static const auto* const kFolders = new std::map<std::string, std::vector<FolderEntry>>{
        {"/etc", {File("resolv.conf")}},
        {"/dev", {File("nvidia0")}},
        {"/image",
         {Link("bin", "usr/bin"), Folder("dev"), Folder("etc"), Folder("proc"), Folder("tmp"), Folder("usr"),
          Folder("var")}},
        {"/image/etc", {File("passwd"), Link("resolv.conf", "../run/resolv.conf")}},
        {"/image/var", {Link("run", "/run"), Folder("tmp")}},
    };
    const auto found = kFolders->find(path);
    return found == kFolders->end() ? std::vector<FolderEntry>() : found->second;
  };
  const SandboxSpec spec{.bwrap = "bwrap",
                         .hostname = "h",
                         .files = {{.source = "/h", .target = "/etc/hosts", .read_only = true}},
                         .root = "/image",
                         .mounts = {{.source = "/v", .target = "/var/run/data"}}};
  const std::string words = Join(SandboxWords(spec, list), " ");
  EXPECT_EQ(
      words.substr(words.find("--tmpfs")),
      "--tmpfs / --symlink usr/bin /bin --tmpfs /etc --ro-bind-try /image/etc/passwd /etc/passwd --symlink "
      "../run/resolv.conf /etc/resolv.conf --ro-bind-try /image/usr /usr --ro-bind-try /image/var /var --dev /dev "
      "--dev-bind /dev/nvidia0 /dev/nvidia0 --bind /proc /proc --ro-bind-try /sys /sys --tmpfs /tmp --tmpfs /run "
      "--tmpfs /var/tmp --ro-bind /h /etc/hosts --bind /v /run/data --ro-bind /etc/resolv.conf /run/resolv.conf "
      "--chdir / --");
}

}  // namespace
}  // namespace muster::local
