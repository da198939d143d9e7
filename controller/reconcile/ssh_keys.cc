#include "controller/reconcile/ssh_keys.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <array>
#include <memory>
#include <string>

#include "base/base64.h"
#include "base/text.h"

namespace muster::controller {
namespace {

constexpr char kCurve[] = "P-521", kSshCurve[] = "nistp521", kSshType[] = "ecdsa-sha2-nistp521";
constexpr size_t kMostPoint = 256;  // bytes: a point of P-521 has 133

template <auto release>
struct Release {
  template <class Object>
  void operator()(Object* object) const {
    release(object);
  }
};

// A string of RFC 4251: the length in four bytes, big-endian, then the bytes.
void PutText(std::string_view text, std::string* blob) {
  const auto size = static_cast<uint32_t>(text.size());
  for (int shift = 24; shift >= 0; shift -= 8) blob->push_back(static_cast<char>(size >> shift & 0xFF));
  blob->append(text);
}

}  // namespace

StatusOr<SshKeys> MakeSshKeys() {
  const Status failed = absl::UnavailableError("OpenSSL makes no ssh key for the job");
  const std::unique_ptr<EVP_PKEY, Release<EVP_PKEY_free>> pair(EVP_EC_gen(kCurve));
  const std::unique_ptr<BIO, Release<BIO_free_all>> memory(BIO_new(BIO_s_mem()));
  if (pair == nullptr || memory == nullptr) return failed;
  if (PEM_write_bio_PrivateKey_traditional(memory.get(), pair.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return failed;
  }
  char* pem = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &pem);
  std::array<unsigned char, kMostPoint> point{};
  size_t length = 0;
  if (size <= 0 ||
      EVP_PKEY_get_octet_string_param(pair.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size(), &length) != 1) {
    return failed;
  }
  std::string blob;
  PutText(kSshType, &blob);
  PutText(kSshCurve, &blob);
  PutText({reinterpret_cast<const char*>(point.data()), length}, &blob);
  SshKeys keys;
  keys.private_key.assign(pem, static_cast<size_t>(size));
  keys.public_key = fmt::format("{} {}\n", kSshType, ToBase64(blob));
  return keys;
}

}  // namespace muster::controller
