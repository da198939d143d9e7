// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/derived_secrets.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/obj_mac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <array>
#include <memory>
#include <span>

#include "base/base64.h"
#include "base/text.h"

namespace muster::controller {
namespace {

constexpr char kSshCurve[] = "nistp521", kSshType[] = "ecdsa-sha2-nistp521";
constexpr size_t kTokenBytes = 32;
// Twice the size of the curve's order, so that the remainder is as good as uniform.
constexpr size_t kScalarBytes = 132;
constexpr size_t kMostPoint = 256;  // bytes: a point of P-521 has 133

template <auto release>
struct Release {
  template <class Object>
  void operator()(Object* object) const {
    release(object);
  }
};
template <class Object, auto release>
using Owned = std::unique_ptr<Object, Release<release>>;

Status Failed(const char* what) { return absl::UnavailableError(fmt::format("OpenSSL makes no {} for the job", what)); }

// HKDF. `purpose`: no value is used for two things.
bool Derive(std::string_view master_key, std::string_view purpose, const SecretOf& of, std::span<unsigned char> out) {
  std::string key(master_key), info = fmt::format("muster {}\n{}\n{}", purpose, of.uid, of.name);
  std::string digest = "SHA256";
  const Owned<EVP_KDF, EVP_KDF_free> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  if (kdf == nullptr) return false;
  const Owned<EVP_KDF_CTX, EVP_KDF_CTX_free> context(EVP_KDF_CTX_new(kdf.get()));
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key.data(), key.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      OSSL_PARAM_construct_end(),
  };
  return context != nullptr && EVP_KDF_derive(context.get(), out.data(), out.size(), parameters) == 1;
}

// A string of RFC 4251: the length in four bytes, big-endian, then the bytes.
void PutText(std::string_view text, std::string* blob) {
  const auto size = static_cast<uint32_t>(text.size());
  for (int shift = 24; shift >= 0; shift -= 8) blob->push_back(static_cast<char>(size >> shift & 0xFF));
  blob->append(text);
}

struct Point {
  std::array<unsigned char, kMostPoint> bytes{};
  size_t size = 0;
};

// The private key of `random` on `group`, from 1 to its order - 1, and the point of its public key; false: OpenSSL
// fails.
bool MakeScalar(const EC_GROUP* group, std::span<const unsigned char> random, BIGNUM* scalar, Point* point) {
  const Owned<BN_CTX, BN_CTX_free> context(BN_CTX_new());
  const Owned<BIGNUM, BN_free> range(BN_dup(EC_GROUP_get0_order(group)));
  const Owned<EC_POINT, EC_POINT_free> at(EC_POINT_new(group));
  if (context == nullptr || range == nullptr || at == nullptr) return false;
  const Owned<BIGNUM, BN_clear_free> whole(BN_bin2bn(random.data(), static_cast<int>(random.size()), nullptr));
  if (whole == nullptr || BN_sub_word(range.get(), 1) != 1) return false;
  if (BN_mod(scalar, whole.get(), range.get(), context.get()) != 1 || BN_add_word(scalar, 1) != 1) return false;
  if (EC_POINT_mul(group, at.get(), scalar, nullptr, nullptr, context.get()) != 1) return false;
  point->size = EC_POINT_point2oct(group, at.get(), POINT_CONVERSION_UNCOMPRESSED, point->bytes.data(),
                                   point->bytes.size(), context.get());
  return point->size > 0;
}

Owned<EVP_PKEY, EVP_PKEY_free> MakePair(const BIGNUM* scalar, const Point& point) {
  const Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free> fields(OSSL_PARAM_BLD_new());
  if (fields == nullptr ||
      OSSL_PARAM_BLD_push_utf8_string(fields.get(), OSSL_PKEY_PARAM_GROUP_NAME, SN_secp521r1, 0) != 1 ||
      OSSL_PARAM_BLD_push_BN(fields.get(), OSSL_PKEY_PARAM_PRIV_KEY, scalar) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(fields.get(), OSSL_PKEY_PARAM_PUB_KEY, point.bytes.data(), point.size) != 1) {
    return nullptr;
  }
  const Owned<OSSL_PARAM, OSSL_PARAM_free> parameters(OSSL_PARAM_BLD_to_param(fields.get()));
  const Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* pair = nullptr;
  if (parameters == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &pair, EVP_PKEY_KEYPAIR, parameters.get()) != 1) {
    return nullptr;
  }
  return Owned<EVP_PKEY, EVP_PKEY_free>(pair);
}

}  // namespace

StatusOr<std::string> NewMasterKey() {
  std::array<unsigned char, kMasterKeyBytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return absl::UnavailableError("OpenSSL has no random bytes for the key of the jobs' tokens");
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

StatusOr<std::string> DerivedToken(std::string_view master_key, const SecretOf& of) {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (!Derive(master_key, "token", of, bytes)) return Failed("token");
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

StatusOr<SshKeys> DerivedSshKeys(std::string_view master_key, const SecretOf& of) {
  const Status failed = Failed("ssh key");
  std::array<unsigned char, kScalarBytes> random{};
  const Owned<EC_GROUP, EC_GROUP_free> group(EC_GROUP_new_by_curve_name(NID_secp521r1));
  const Owned<BIGNUM, BN_clear_free> scalar(BN_secure_new());
  Point point;
  if (group == nullptr || scalar == nullptr || !Derive(master_key, "ssh key", of, random) ||
      !MakeScalar(group.get(), random, scalar.get(), &point)) {
    return failed;
  }
  const Owned<EVP_PKEY, EVP_PKEY_free> pair = MakePair(scalar.get(), point);
  const Owned<BIO, BIO_free_all> memory(BIO_new(BIO_s_mem()));
  if (pair == nullptr || memory == nullptr ||
      PEM_write_bio_PrivateKey_traditional(memory.get(), pair.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return failed;
  }
  char* pem = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &pem);
  if (size <= 0) return failed;
  std::string blob;
  PutText(kSshType, &blob);
  PutText(kSshCurve, &blob);
  PutText({reinterpret_cast<const char*>(point.bytes.data()), point.size}, &blob);
  SshKeys keys;
  keys.private_key.assign(pem, static_cast<size_t>(size));
  keys.public_key = fmt::format("{} {}\n", kSshType, ToBase64(blob));
  return keys;
}

}  // namespace muster::controller
