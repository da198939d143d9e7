// SPDX-License-Identifier: Apache-2.0
// The assertion of a service account, checked with its public key. google_test.py tests the requests for tokens.
#include "initializers/google/tokens.h"

#include <gmock/gmock.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/text.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Key {
  explicit Key(EVP_PKEY* made) : key(made) {}
  ~Key() { EVP_PKEY_free(key); }
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;

  // PKCS #8, as in Google's files; encrypted if there is a password.
  std::string Pem(const char* password = nullptr) const {
    BIO* bio = BIO_new(BIO_s_mem());
    const int length = password == nullptr ? 0 : static_cast<int>(std::char_traits<char>::length(password));
    PEM_write_bio_PKCS8PrivateKey(bio, key, password == nullptr ? nullptr : EVP_aes_128_cbc(), password, length,
                                  nullptr, nullptr);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string pem(data, static_cast<size_t>(size));
    BIO_free(bio);
    return pem;
  }
  bool Verifies(std::string_view text, const std::string& signature) const {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    EVP_DigestVerifyInit(context, nullptr, EVP_sha256(), nullptr, key);
    const int good =
        EVP_DigestVerify(context, reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                         reinterpret_cast<const unsigned char*>(text.data()), text.size());
    EVP_MD_CTX_free(context);
    return good == 1;
  }
  EVP_PKEY* const key;
};

std::string FromBase64Url(std::string_view text) {
  std::string plain(text);
  std::replace(plain.begin(), plain.end(), '-', '+');
  std::replace(plain.begin(), plain.end(), '_', '/');
  while (plain.size() % 4 != 0) plain += '=';
  return FromBase64(plain).value_or("not base64");
}

TEST(Assertion, IsSignedAndSaysWhoForWhatAndHowLong) {
  const Key key(EVP_RSA_gen(2048));
  ServiceAccount account{.client_email = "x@p.iam.gserviceaccount.com",
                         .private_key_id = "k1",
                         .token_uri = "https://oauth2.googleapis.com/token",
                         .private_key = key.Pem()};
  auto assertion = SignAssertion(account, 1'795'334'326);
  ASSERT_TRUE(assertion.ok()) << assertion.status();
  const auto parts = Split(*assertion, '.');
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(assertion->find_first_of("=+/"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(FromBase64Url(parts[0])),
            nlohmann::json::parse(R"({"alg":"RS256","typ":"JWT","kid":"k1"})"));
  EXPECT_EQ(nlohmann::json::parse(FromBase64Url(parts[1])), nlohmann::json::parse(R"({
    "iss":"x@p.iam.gserviceaccount.com","scope":"https://www.googleapis.com/auth/devstorage.read_only",
    "aud":"https://oauth2.googleapis.com/token","iat":1795334326,"exp":1795337926})"));
  const std::string_view signed_text = std::string_view(*assertion).substr(0, assertion->rfind('.'));
  EXPECT_TRUE(key.Verifies(signed_text, FromBase64Url(parts[2])));
  EXPECT_FALSE(Key(EVP_RSA_gen(2048)).Verifies(signed_text, FromBase64Url(parts[2])));

  account.private_key_id.clear();
  assertion = SignAssertion(account, 0, "https://www.googleapis.com/auth/iam");
  ASSERT_TRUE(assertion.ok()) << assertion.status();
  EXPECT_EQ(nlohmann::json::parse(FromBase64Url(Split(*assertion, '.')[0])),
            nlohmann::json::parse(R"({"alg":"RS256","typ":"JWT"})"));
  EXPECT_EQ(nlohmann::json::parse(FromBase64Url(Split(*assertion, '.')[1]))["scope"],
            "https://www.googleapis.com/auth/iam");
}

TEST(Assertion, NeedsAnRsaKey) {
  const std::string pem = Key(EVP_RSA_gen(2048)).Pem();
  std::string damaged = pem;
  damaged[damaged.size() / 2] = '!';
  const std::string rows[] = {
      "",
      "s3cr3t",
      damaged,
      pem.substr(0, pem.size() / 2),
      Key(EVP_EC_gen("P-256")).Pem(),
      Key(EVP_RSA_gen(2048)).Pem("s3cr3t"),  // must not prompt for the password
  };
  for (const std::string& text : rows) {
    auto assertion = SignAssertion({.client_email = "x@p", .private_key = text, .origin = "FILE (/k.json)"}, 0);
    ASSERT_FALSE(assertion.ok()) << text;
    EXPECT_EQ(assertion.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(assertion.status().message(),
              "the private_key of FILE (/k.json) is not an RSA key in PEM without a password; make a new key of 'x@p'");
  }
}

}  // namespace
}  // namespace muster::initializers
