// SPDX-License-Identifier: Apache-2.0
#include "local/container/host_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace muster::local {
namespace {

namespace fs = std::filesystem;

class HostPaths : public testing::Test {
 protected:
  HostPaths() {
    std::string pattern = testing::TempDir() + "muster-paths-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    std::ofstream(folder_ + "/file") << "text";
  }
  ~HostPaths() override { fs::remove_all(folder_); }

  std::string Said(const std::string& name, const std::string& type) const {
    const std::string path = name.front() == '/' ? name : folder_ + "/" + name;
    std::string said(Message(CheckHostPath({.where = "spec.volumes[0].hostPath", .path = path, .type = type})));
    if (const size_t at = said.find(folder_); at != std::string::npos) said.erase(at, folder_.size());
    return said;
  }

  std::string folder_;
};

TEST_F(HostPaths, TheirTypesAreChecked) {
  const std::string at = "spec.volumes[0].hostPath: ";
  const struct {
    const char *name, *type;
    std::string said;
  } rows[] = {
      {"", "", ""},
      {"file", "", ""},
      {"", "Directory", ""},
      {"file", "File", ""},
      {"/dev/null", "CharDevice", ""},
      {"none", "DirectoryOrCreate", ""},
      {"none", "FileOrCreate", ""},
      {"none", "", at + "'/none' does not exist on this machine; create it, or give it the type DirectoryOrCreate"},
      {"none", "Directory",
       at + "'/none' does not exist on this machine; create it, or give it the type DirectoryOrCreate"},
      {"none", "File", at + "'/none' does not exist on this machine; create it"},
      {"file", "Directory", at + "'/file' is not a folder, as its type Directory says"},
      {"file", "DirectoryOrCreate", at + "'/file' is not a folder, as its type DirectoryOrCreate says"},
      {"file/below", "Directory", at + "'/file/below' cannot be used: Not a directory"},
      {"file", "Socket", at + "'/file' is not a socket, as its type Socket says"},
      {"/dev/null", "BlockDevice", at + "'/dev/null' is not a block device, as its type BlockDevice says"},
  };
  for (const auto& row : rows) EXPECT_EQ(Said(*row.name == 0 ? "." : row.name, row.type), row.said) << row.name;
}

TEST_F(HostPaths, AFileIsCreatedAndNoneIsChanged) {
  for (const char* name : {"file", "new"}) {
    EXPECT_TRUE(MakeHostPath({.where = "x", .path = fmt::format("{}/{}", folder_, name), .type = "FileOrCreate"}).ok());
  }
  EXPECT_EQ(fs::file_size(folder_ + "/file"), 4);
  EXPECT_EQ(fs::file_size(folder_ + "/new"), 0);
}

}  // namespace
}  // namespace muster::local
