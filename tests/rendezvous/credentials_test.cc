#include "rendezvous/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace muster::rendezvous {
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
  StatusOr<Credentials> read = ReadCredentials({"", File("cert", "C"), File("key", "K"), File("ca", "A")});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->tls());
  EXPECT_EQ(read->tls_cert + read->tls_key + read->tls_ca, "CKA");
}

TEST_F(CredentialsTest, AWrongFileIsNamed) {
  EXPECT_THAT(Error({folder_ + "/absent", "", "", ""}), HasSubstr("absent"));
  EXPECT_THAT(Error({File("empty", " \n"), "", "", ""}), HasSubstr("empty"));
  EXPECT_THAT(Error({File("large", std::string((1 << 20) + 1, 'x')), "", "", ""}), HasSubstr("large"));
  EXPECT_THAT(Error({folder_, "", "", ""}), HasSubstr(folder_));
  std::string words = Error({File("words", "two words"), "", "", ""});
  EXPECT_THAT(words, HasSubstr("words"));
  EXPECT_THAT(words, testing::Not(HasSubstr("two words")));  // never the token itself
  EXPECT_THAT(Error({"", File("cert", "C"), "", ""}), HasSubstr("tls_key tls_ca"));
  ASSERT_EQ(mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  EXPECT_THAT(Error({folder_ + "/fifo", "", "", ""}), HasSubstr("fifo"));  // and does not wait for a writer
}

TEST(SameToken, ComparesWholeTexts) {
  EXPECT_TRUE(SameToken("abc", "abc"));
  for (const char* other : {"", "ab", "abd", "abcd", "abcabc", "Abc"}) EXPECT_FALSE(SameToken("abc", other)) << other;
}

}  // namespace
}  // namespace muster::rendezvous
