// SPDX-License-Identifier: Apache-2.0
#include "local/image/root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::local {
namespace {

using testing::ElementsAre;

TEST(ImageRoots, AreFoundByNameOrForAll) {
  const ImageRoots roots = {{"reg.example.com/a/train:1", {.folder = "/whole"}}, {"train", {.folder = "/last"}}};
  ImageRoots with_rest = roots;
  with_rest[""] = {.folder = "/rest"};
  struct Row {
    const char *image, *folder, *folder_with_rest;
  };
  const Row rows[] = {{"reg.example.com/a/train:1", "/whole", "/whole"},
                      {"reg.example.com/a/train:2", "/last", "/last"},
                      {"train@sha256:0", "/last", "/last"},
                      {"other", "", "/rest"},
                      {"", "", "/rest"}};
  for (const Row& row : rows) {
    const ImageRoot *found = RootOfImage(roots, row.image), *rest = RootOfImage(with_rest, row.image);
    EXPECT_EQ(found == nullptr ? "" : found->folder, row.folder) << row.image;
    EXPECT_EQ(rest == nullptr ? "" : rest->folder, row.folder_with_rest) << row.image;
  }
}

TEST(ImageRoots, AreReadFromFlags) {
  struct Row {
    const char *text, *image, *path;
  };
  const Row rows[] = {{"root", "", "root"}, {"a=root", "a", "root"}, {"r:5000/a:1=./b=c", "r:5000/a:1", "./b=c"},
                      {"/a=b", "", "/a=b"}, {"./a=b", "", "./a=b"},  {"=b", "", "=b"}};
  for (const Row& row : rows) {
    EXPECT_EQ(ReadImageFlag(row.text).image, row.image) << row.text;
    EXPECT_EQ(ReadImageFlag(row.text).path, row.path) << row.text;
  }
}

TEST(ImageRoots, HaveVariablesOfTheirOwn) {
  const std::vector<std::string> machine = {"PATH=/here", "HOME=/root", "LANG=C", "TERM=x", "HOSTNAME=h"};
  EXPECT_THAT(EnvironmentInRoot(machine, {}),
              ElementsAre("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "USER=user",
                          "TERM=x", "HOSTNAME=h"));
  EXPECT_THAT(EnvironmentInRoot(machine, {.environment = {"PATH=/bin", "A=b=c", "HOME=/home/a"}}),
              ElementsAre("USER=user", "TERM=x", "HOSTNAME=h", "PATH=/bin", "A=b=c", "HOME=/home/a"));
}

}  // namespace
}  // namespace muster::local
