// SPDX-License-Identifier: Apache-2.0
#include "http/ca_places.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace muster::http {
namespace {

namespace fs = std::filesystem;

const SystemCa kSystem = {.folder = "/system"};

class CaPlacesTest : public testing::Test {
 protected:
  CaPlacesTest() {
    std::string pattern = testing::TempDir() + "muster-ca-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~CaPlacesTest() override { fs::remove_all(folder_); }

  std::string FolderWith(const std::string& name) const {
    fs::create_directories(folder_ + "/of");
    std::ofstream(folder_ + "/of/" + name) << "certificate";
    return folder_ + "/of";
  }

  std::string folder_;
};

TEST_F(CaPlacesTest, AFileIsTakenAsItIs) {
  for (const std::string& path : {std::string(), folder_ + "/nothing.crt", FolderWith("a.crt") + "/a.crt"}) {
    const CaPlaces places = FindCaPlaces(path, "", kSystem);
    EXPECT_EQ(places.file, path);
    EXPECT_EQ(places.folders, "") << "the system's count by themselves";
    EXPECT_EQ(places.problem, "");
  }
}

TEST_F(CaPlacesTest, TheFileOfTheDistributionIsFound) {
  const std::string first = FolderWith("a.crt") + "/a.crt", second = FolderWith("b.crt") + "/b.crt";
  const std::string missing = folder_ + "/missing.crt";
  EXPECT_EQ(FindSystemCa("/certs", {missing.c_str(), first.c_str(), second.c_str()}).file, first);
  EXPECT_EQ(FindSystemCa("/certs", {missing.c_str()}).file, "");
  EXPECT_EQ(FindSystemCa("/certs", {}).folder, "/certs");
  const SystemCa system = {.folder = "/certs", .file = first};
  EXPECT_EQ(FindCaPlaces("", "", system).file, first);
  EXPECT_EQ(FindCaPlaces("", "/x", system).folders, "/x:/certs");
  EXPECT_EQ(FindCaPlaces("/bundle.crt", "", system).file, "/bundle.crt");
}

TEST_F(CaPlacesTest, AFolderCountsBesideTheSystems) {
  const std::string folder = FolderWith("5ed36f99.0");
  EXPECT_EQ(FindCaPlaces(folder, "", kSystem).folders, folder + ":/system");
  EXPECT_EQ(FindCaPlaces(folder, "", {}).folders, folder);
  EXPECT_EQ(FindCaPlaces(folder, "/x:/y", kSystem).folders, folder + ":/x:/y:/system");
  EXPECT_EQ(FindCaPlaces(folder, "", kSystem).file, "");
  const CaPlaces both = FindCaPlaces("/bundle.crt", "/x", kSystem);
  EXPECT_EQ(both.file, "/bundle.crt");
  EXPECT_EQ(both.folders, "/x:/system");
}

TEST_F(CaPlacesTest, NamesThatAreNoHashes) {
  const std::string folder = FolderWith("ca.crt");
  for (const char* name :
       {"5ed36f99", "5ed36f99.", "5ed36f9.0", "5ed36f999.0", "5ed36f99.r0", "5ED36F99.0", "5ed36fg9.0"}) {
    FolderWith(name);
  }
  EXPECT_NE(FindCaPlaces(folder, "", kSystem).problem, "");
  FolderWith("5ed36f99.10");
  EXPECT_EQ(FindCaPlaces(folder, "", kSystem).problem, "");
}

}  // namespace
}  // namespace muster::http
