// SPDX-License-Identifier: Apache-2.0
#include "net/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace muster::net {
namespace {

using testing::HasSubstr;

class CredentialsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "credentialsXXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::string& name, const std::string& text) {
    std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::string Error(const CredentialFiles& files) {
    StatusOr<Credentials> read = ReadCredentials(files);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(Message(read.status()));
  }

  std::string folder_;
};

TEST_F(CredentialsTest, NothingGivenIsNothingAsked) {
  StatusOr<Credentials> read = ReadCredentials({});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->token, "");
  EXPECT_FALSE(read->tls());
}

TEST_F(CredentialsTest, ATokenLosesItsNewline) {
  StatusOr<Credentials> read = ReadCredentials({File("token", "s3cret\n"), "", "", ""});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->token, "s3cret");
}

TEST_F(CredentialsTest, AllThreeTlsFiles) {
  std::string command = "cd " + folder_ +
                        " && for who in one two; do openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
                        "-nodes -days 2 -keyout $who.key -out $who.pem -subj /CN=$who 2>/dev/null || exit 1; done";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::string cert = folder_ + "/one.pem", key = folder_ + "/one.key";
  StatusOr<Credentials> read = ReadCredentials({"", cert, key, cert});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->tls());
  EXPECT_THAT(Error({"", cert, folder_ + "/two.key", cert}), HasSubstr("not the key of"));
  EXPECT_THAT(Error({"", File("cert", "C"), key, cert}), HasSubstr("tls_cert"));
  EXPECT_THAT(Error({"", cert, File("key", "K"), cert}), HasSubstr("tls_key"));
  EXPECT_THAT(Error({"", cert, key, File("ca", "A")}), HasSubstr("tls_ca"));
}

TEST_F(CredentialsTest, AWrongFileIsNamed) {
  EXPECT_THAT(Error({folder_ + "/absent", "", "", ""}), HasSubstr("absent"));
  EXPECT_THAT(Error({File("empty", " \n"), "", "", ""}), HasSubstr("empty"));
  EXPECT_THAT(Error({File("large", std::string((1 << 20) + 1, 'x')), "", "", ""}), HasSubstr("large"));
  EXPECT_THAT(Error({folder_, "", "", ""}), HasSubstr(folder_));
  std::string words = Error({File("words", "two words"), "", "", ""});
  EXPECT_THAT(words, HasSubstr("words"));
  EXPECT_THAT(words, testing::Not(HasSubstr("two words")));  // the message does not show the token
  EXPECT_THAT(Error({"", File("cert", "C"), "", ""}), HasSubstr("tls_key tls_ca"));
  ASSERT_EQ(mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  EXPECT_THAT(Error({folder_ + "/fifo", "", "", ""}), HasSubstr("fifo"));  // does not wait for a writer
}

TEST(SameToken, ComparesWholeTexts) {
  EXPECT_TRUE(SameToken("abc", "abc"));
  for (const char* other : {"", "ab", "abd", "abcd", "abcabc", "Abc"}) EXPECT_FALSE(SameToken("abc", other)) << other;
}

}  // namespace
}  // namespace muster::net
