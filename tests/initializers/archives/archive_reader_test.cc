// SPDX-License-Identifier: Apache-2.0
#include "initializers/archives/archive_reader.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "base/text.h"

namespace muster::initializers {
namespace {

TEST(IsArchiveName, ByItsEnd) {
  for (const char* name : {"a.tar", "a.tar.gz", "a.tgz", "a.tar.zst", "a.tzst", "a.zip", "b/c/A.TAR.GZ", "a.b.ZIP"}) {
    EXPECT_TRUE(IsArchiveName(name)) << name;
  }
  for (const char* name : {"", "tar", ".tar", "x/.zip", "a.tar/b", "a.gz", "a.zst", "a.tar.bz2", "a.tar.txt", "zip"}) {
    EXPECT_FALSE(IsArchiveName(name)) << name;
  }
  for (const char* name : {"a.tar.zst", "a.tzst", "b/A.TAR.ZST"}) EXPECT_TRUE(IsZstdName(name)) << name;
  for (const char* name : {"a.zst", "a.tar.gz", "a.tar", "", "st", ".tzst"}) EXPECT_FALSE(IsZstdName(name)) << name;
}

struct TarMember {
  std::string name;
  std::string content = {};
  char type = '0';
  std::string link = {};
};

// A tar in the POSIX ustar format.
std::string TarOf(const std::vector<TarMember>& members) {
  std::string tar;
  for (const TarMember& member : members) {
    std::array<char, 512> header{};
    member.name.copy(&header[0], 100);
    fmt::format_to_n(&header[100], 8, "0000644");
    fmt::format_to_n(&header[124], 12, "{:011o}", member.content.size());
    fmt::format_to_n(&header[136], 12, "00000000000");
    header[156] = member.type;
    member.link.copy(&header[157], 100);
    fmt::format_to_n(&header[257], 8, "ustar{}00", '\0');
    std::fill_n(&header[148], 8, ' ');
    unsigned sum = 0;
    for (char byte : header) sum += static_cast<unsigned char>(byte);
    fmt::format_to_n(&header[148], 8, "{:06o}{}", sum, '\0');
    tar.append(header.data(), header.size());
    tar += member.content;
    tar.resize((tar.size() + 511) / 512 * 512);
  }
  return tar + std::string(1024, '\0');
}

Descriptor InMemory(std::string_view bytes) {
  Descriptor file(memfd_create("archive", MFD_CLOEXEC));
  EXPECT_EQ(write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(lseek(file.get(), 0, SEEK_SET), 0);
  return file;
}

bool Everything(std::string_view) { return true; }

TEST(ArchiveReader, MembersInOrderWithTheirContent) {
  WindowLimits windows;
  auto reader = ArchiveReader::Open(InMemory(TarOf({{.name = "./"},
                                                    {.name = "./d/", .type = '5'},
                                                    {.name = "./d/f", .content = "content"},
                                                    {.name = "d/s", .type = '2', .link = "../x/./y"},
                                                    {.name = "d/h", .type = '1', .link = "d/f"}})),
                                    "t.tar", windows);
  ASSERT_TRUE(reader.ok()) << reader.status();
  struct {
    Member::Kind kind;
    std::string path, target, content;
  } expected[] = {{Member::Kind::kFolder, "d", "", ""},
                  {Member::Kind::kFile, "d/f", "", "content"},
                  {Member::Kind::kLink, "d/s", "x/y", ""},
                  {Member::Kind::kLink, "d/h", "d/f", ""}};
  for (const auto& [kind, path, target, content] : expected) {
    auto member = (*reader)->Next(Everything);
    ASSERT_TRUE(member.ok()) << member.status();
    ASSERT_TRUE(member->has_value());
    EXPECT_EQ((*member)->kind, kind) << path;
    EXPECT_EQ((*member)->path, path);
    EXPECT_EQ((*member)->target, target) << path;
    EXPECT_EQ((*member)->size, content.size()) << path;
    std::string bytes(100, '\0');
    auto got = (*reader)->Read(bytes.data(), bytes.size());
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(bytes.substr(0, *got), content);
  }
  auto end = (*reader)->Next(Everything);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_FALSE(end->has_value());
}

TEST(ArchiveReader, RefusesWhatWouldLeaveTheFolder) {
  WindowLimits windows;
  const struct {
    TarMember member;
    const char* words;
  } kBad[] = {
      {{.name = "../evil"}, "an element '.' or '..'"},
      {{.name = "/etc/evil"}, "an empty element"},
      {{.name = "a/../../evil"}, "an element '.' or '..'"},
      {{.name = "\xff\xfe"}, "not UTF-8"},
      {{.name = ".muster/x"}, "Muster's own"},
      {{.name = "l", .type = '2', .link = "/etc"}, "out of the archive"},
      {{.name = "l", .type = '2', .link = ".."}, "out of the archive"},
      {{.name = "d/l", .type = '2', .link = "../../x"}, "out of the archive"},
      {{.name = "d/l", .type = '2', .link = ".."}, "out of the archive"},
      {{.name = "l", .type = '1', .link = "../x"}, "out of the archive"},
      {{.name = "dev", .type = '3'}, "a device"},
      {{.name = "pipe", .type = '6'}, "a device, a pipe"},
  };
  for (const auto& [bad, words] : kBad) {
    auto reader = ArchiveReader::Open(InMemory(TarOf({bad, {.name = "good"}})), "t.tar", windows);
    ASSERT_TRUE(reader.ok()) << reader.status();
    auto member = (*reader)->Next(Everything);
    EXPECT_EQ(member.status().code(), absl::StatusCode::kInvalidArgument) << bad.name;
    EXPECT_NE(member.status().message().find(words), absl::string_view::npos) << member.status();
    EXPECT_NE(member.status().message().find("t.tar"), absl::string_view::npos) << member.status();

    auto again = ArchiveReader::Open(InMemory(TarOf({bad, {.name = "good"}})), "t.tar", windows);
    auto good = (*again)->Next([](std::string_view path) { return path == "good"; });
    ASSERT_TRUE(good.ok()) << "what is not wanted may be anything: " << good.status();
    EXPECT_EQ((*good)->path, "good");
  }
}

TEST(ArchiveReader, WhatIsNoArchive) {
  WindowLimits windows;
  for (std::string text :
       {std::string(), std::string("<html>"), std::string(2000, 'x'), TarOf({{.name = "f"}}).substr(0, 300)}) {
    auto reader = ArchiveReader::Open(InMemory(text), "t.tar", windows);
    Status status = reader.ok() ? (*reader)->Next(Everything).status() : reader.status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text.size() << " bytes: " << status;
  }
}

}  // namespace
}  // namespace muster::initializers
