// SPDX-License-Identifier: Apache-2.0
#include "initializers/archives/unpack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/text.h"

namespace muster::initializers {
namespace {

// A member of a tar (ustar) without content.
std::string Header(const std::string& name) {
  std::string header(512, '\0');
  const auto put = [&header](size_t at, std::string_view text) { std::memcpy(&header[at], text.data(), text.size()); };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, "00000000000");
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, std::string_view("ustar\00000", 8));
  const unsigned sum = std::accumulate(header.begin(), header.end(), 0U,
                                       [](unsigned all, char c) { return all + static_cast<unsigned char>(c); });
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return header;
}

class UnpackTest : public testing::Test {
 protected:
  UnpackTest() {
    std::string pattern = testing::TempDir() + "muster-unpack-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    auto staging = Staging::Open(folder_);
    EXPECT_TRUE(staging.ok()) << staging.status();
    staging_ = *std::move(staging);
  }
  ~UnpackTest() override { std::filesystem::remove_all(folder_); }

  StatusOr<Unpacked> OfMembers(const std::vector<std::string>& names, const std::string& path, UnpackLimits limits) {
    std::string tar;
    for (const std::string& name : names) tar += Header(name);
    tar += std::string(1024, '\0');
    EXPECT_TRUE(staging_->WriteWhole("archive", tar, {}, false).ok());
    MovedFile archive;
    archive.entry.path = path;
    archive.entry.size = tar.size();
    archive.name = "archive";
    UnpackOptions options;
    options.limits = limits;
    const std::atomic<bool> stop = false;
    return Unpack(*staging_, archive, options, stop);
  }

  std::string folder_;
  std::unique_ptr<Staging> staging_;
};

TEST_F(UnpackTest, MembersWithoutContentCountToo) {
  const UnpackLimits limits = {.free = 10 * 1024, .ratio = 1};
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back(fmt::format("{}", i));
  auto unpacked = OfMembers(names, "a.tar", limits);
  ASSERT_TRUE(unpacked.ok()) << unpacked.status();
  EXPECT_EQ(unpacked->files.size(), 10U);
  EXPECT_EQ(unpacked->bytes, 0U);
  names.push_back("one-more");
  unpacked = OfMembers(names, "a.tar", limits);
  EXPECT_TRUE(absl::IsResourceExhausted(unpacked.status())) << unpacked.status();
  EXPECT_NE(Message(unpacked.status()).find("a.tar: "), std::string_view::npos);
  EXPECT_NE(Message(unpacked.status()).find("--extract-ratio"), std::string_view::npos);
}

TEST_F(UnpackTest, APathIsCheckedAsAWhole) {
  std::string deep;
  while (deep.size() < 3000) deep += std::string(100, 'd') + "/";
  EXPECT_TRUE(OfMembers({"short"}, deep + "a.tar", {}).ok());
  const auto unpacked = OfMembers({std::string(60, 'm')}, deep + "a.tar", {});
  EXPECT_TRUE(absl::IsInvalidArgument(unpacked.status())) << unpacked.status();
  EXPECT_NE(Message(unpacked.status()).find("is longer than 3072 bytes"), std::string_view::npos) << unpacked.status();
}

}  // namespace
}  // namespace muster::initializers
