// SPDX-License-Identifier: Apache-2.0
#include "local/pod/working_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::local {
namespace {

TEST(WorkingFolder, IsMadeWhereItIsNotThere) {
  struct Row {
    const char *path, *made, *mounted;  // made: a folder; mounted: where it is seen
  };
  const Row rows[] = {
      {"", "", ""},
      {"/", "", ""},
      {"/there", "", ""},
      {"/nowhere/at//all/", "/pod/working-folders/c", "/nowhere/at/all"},
      {"/data", "", ""},
      {"/data/a/b", "/volume/a/b", ""},
      {"/database", "/pod/working-folders/c", "/database"},
      {"/data/fixed/a", "", ""},  // read-only
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.path);
    ContainerProgram container{.name = "c", .working_directory = row.path};
    container.mounts = {{.source = "/volume", .target = "/data"},
                        {.source = "/secret", .target = "/data/fixed", .read_only = true}};
    std::vector<PodFolder> folders;
    NeedWorkingFolder(
        "/pod", [](const std::string& path) { return path == "/there"; }, &container, &folders);
    ASSERT_EQ(folders.size(), *row.made == '\0' ? 0 : 1);
    EXPECT_EQ(folders.empty() ? "" : folders[0].path, row.made);
    ASSERT_EQ(container.mounts.size(), *row.mounted == '\0' ? 2 : 3);
    EXPECT_EQ(container.mounts.size() == 2 ? "" : container.mounts[2].target, row.mounted);
  }
}

}  // namespace
}  // namespace muster::local
