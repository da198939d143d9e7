// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/derived_secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <array>
#include <memory>
#include <set>

#include "base/base64.h"

namespace muster::controller {
namespace {

const std::string kKey(kMasterKeyBytes, 'k');
constexpr SecretOf kOf{"6f3c", "a-token-6f3c"};

// The same call of `openssl kdf` gives this value: HKDF of 32 times 'k' with the info "muster
// token\n6f3c\na-token-6f3c".
TEST(DerivedSecrets, ATokenIsHkdfOfTheMasterKey) {
  EXPECT_EQ(*DerivedToken(kKey, kOf), "b3ed464faa6f572c43edbaae4dc55bdc6832e88c30e3c2b6cd93221aca9414be");
}

TEST(DerivedSecrets, AnotherJobSecretOrKeyHasAnotherValue) {
  std::set<std::string> tokens, keys;
  const std::string other(kMasterKeyBytes, 'l');
  for (const auto& [key, of] :
       {std::pair(kKey, kOf), {other, kOf}, {kKey, SecretOf{"6f3d", kOf.name}}, {kKey, SecretOf{kOf.uid, "b"}}}) {
    tokens.insert(*DerivedToken(key, of));
    keys.insert(DerivedSshKeys(key, of)->private_key);
  }
  EXPECT_EQ(tokens.size(), 4u);
  EXPECT_EQ(keys.size(), 4u);
}

TEST(DerivedSecrets, AnSshKeyIsTheSameEachTimeAndAPair) {
  const auto keys = DerivedSshKeys(kKey, kOf);
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(DerivedSshKeys(kKey, kOf)->private_key, keys->private_key);
  EXPECT_THAT(keys->private_key, ::testing::StartsWith("-----BEGIN EC PRIVATE KEY-----\n"));

  const std::unique_ptr<BIO, decltype(&BIO_free_all)> pem(
      BIO_new_mem_buf(keys->private_key.data(), static_cast<int>(keys->private_key.size())), BIO_free_all);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> pair(
      PEM_read_bio_PrivateKey(pem.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  ASSERT_NE(pair, nullptr);
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new_from_pkey(nullptr, pair.get(), nullptr), EVP_PKEY_CTX_free);
  EXPECT_EQ(EVP_PKEY_check(context.get()), 1) << "the public key is that of the private one";
  std::array<unsigned char, 256> point{};
  size_t size = 0;
  ASSERT_EQ(EVP_PKEY_get_octet_string_param(pair.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size(), &size), 1);
  const std::string text = keys->public_key;
  ASSERT_TRUE(text.starts_with("ecdsa-sha2-nistp521 ") && text.ends_with("\n"));
  const auto blob = FromBase64(text.substr(20, text.size() - 21));
  ASSERT_TRUE(blob.ok());
  EXPECT_THAT(*blob, ::testing::EndsWith(std::string(reinterpret_cast<const char*>(point.data()), size)));
}

}  // namespace
}  // namespace muster::controller
