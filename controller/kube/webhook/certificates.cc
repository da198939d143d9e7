// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/certificates.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/base64.h"
#include "base/text.h"
#include "controller/api/lenient.h"

namespace muster::controller {
namespace {

struct Free {
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
  void operator()(ASN1_INTEGER* number) const { ASN1_INTEGER_free(number); }
  void operator()(BIGNUM* number) const { BN_free(number); }
};
template <class Type>
using Owned = std::unique_ptr<Type, Free>;

constexpr auto kSkew = std::chrono::hours(1);  // a certificate is valid from this long ago: clocks differ
constexpr auto kAuthorityLife = std::chrono::hours(24 * 3650);
constexpr auto kLife = std::chrono::hours(24 * 365);
constexpr char kAuthorityName[] = "muster-webhook-ca";
constexpr int kSerialBits = 127;

Owned<BIO> Open(std::string_view pem) { return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

Owned<X509> ReadCertificate(const std::string& pem) {
  Owned<X509> read(PEM_read_bio_X509(Open(pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return read;
}

Owned<EVP_PKEY> ReadKey(const std::string& pem) {
  const auto no_passphrase = [](char*, int, int, void*) { return 0; };
  Owned<EVP_PKEY> read(PEM_read_bio_PrivateKey(Open(pem).get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return read;
}

template <class Write>
std::string PemOf(Write write) {
  const Owned<BIO> bio(BIO_new(BIO_s_mem()));
  if (!bio || write(bio.get()) != 1) return "";
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return {bytes, static_cast<size_t>(size)};
}
std::string PemOf(X509* certificate) {
  return PemOf([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}
std::string PemOf(EVP_PKEY* key) {
  return PemOf([&](BIO* bio) { return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

WallTime TimeOf(const ASN1_TIME* time) {
  tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return WallTime();
  return WallTime(std::chrono::seconds(timegm(&parts)));
}

// When two thirds of the certificate's life are over; nullopt: it is not valid now.
std::optional<WallTime> RenewAt(const X509* certificate, WallTime now) {
  const WallTime begin = TimeOf(X509_get0_notBefore(certificate)), end = TimeOf(X509_get0_notAfter(certificate));
  if (now < begin || now >= end) return std::nullopt;
  return begin + (end - begin) / 3 * 2;
}

bool AddExtension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool SetSerial(X509* certificate) {
  const Owned<BIGNUM> number(BN_new());
  return number && BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

std::string AlternativeNames(const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (const std::string& name : names) {
    const bool address =
        name.find(':') != std::string::npos || name.find_first_not_of("0123456789.") == std::string::npos;
    parts.push_back(fmt::format("{}:{}", address ? "IP" : "DNS", name));
  }
  return Join(parts, ",");
}

struct Issuer {
  X509* certificate;  // null: the new certificate signs itself
  EVP_PKEY* key;
};

// Null: OpenSSL failed.
Owned<X509> Issue(EVP_PKEY* key, const std::string& subject, Issuer issuer, const std::vector<std::string>& names,
                  WallTime now, std::chrono::hours life) {
  Owned<X509> made(X509_new());
  X509* certificate = made.get();
  const bool authority = issuer.certificate == nullptr;
  X509* by = authority ? certificate : issuer.certificate;
  const auto seconds = [](WallTime time) {
    return static_cast<time_t>(std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
  };
  const bool done =
      certificate != nullptr && X509_set_version(certificate, X509_VERSION_3) == 1 && SetSerial(certificate) &&
      ASN1_TIME_set(X509_getm_notBefore(certificate), seconds(now - kSkew)) != nullptr &&
      ASN1_TIME_set(X509_getm_notAfter(certificate), seconds(now + life)) != nullptr &&
      X509_set_pubkey(certificate, key) == 1 &&
      X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(subject.data()),
                                 static_cast<int>(subject.size()), -1, 0) == 1 &&
      X509_set_issuer_name(certificate, X509_get_subject_name(by)) == 1 &&
      AddExtension(certificate, by, NID_basic_constraints, authority ? "critical,CA:TRUE" : "critical,CA:FALSE") &&
      AddExtension(certificate, by, NID_key_usage,
                   authority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature") &&
      AddExtension(certificate, by, NID_subject_key_identifier, "hash") &&
      AddExtension(certificate, by, NID_authority_key_identifier, "keyid:always") &&
      (authority || (AddExtension(certificate, by, NID_ext_key_usage, "serverAuth") &&
                     AddExtension(certificate, by, NID_subject_alt_name, AlternativeNames(names)))) &&
      X509_sign(certificate, issuer.key, EVP_sha256()) > 0;
  return done ? std::move(made) : nullptr;
}

Status Failed(std::string_view what) {
  char reason[256];
  ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
  ERR_clear_error();
  return absl::InternalError(fmt::format("OpenSSL makes no {}: {}", what, reason));
}

std::vector<std::string> CertificatesOf(std::string_view bundle, WallTime now) {
  std::vector<std::string> pems;
  const Owned<BIO> bio = Open(bundle);
  while (const Owned<X509> next{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (now < TimeOf(X509_get0_notAfter(next.get()))) pems.push_back(PemOf(next.get()));
  }
  ERR_clear_error();
  return pems;
}

Json DataOf(const CertificateSet& set) {
  return {{"ca.crt", ToBase64(set.ca)},
          {"ca.key", ToBase64(set.ca_key)},
          {"tls.crt", ToBase64(set.certificate)},
          {"tls.key", ToBase64(set.key)}};
}

std::string VersionOf(const Json& object) { return TextField(PartOf(object, "metadata"), "resourceVersion"); }

}  // namespace

CertificateSet ReadCertificateSecret(const Json& secret) {
  const Json& data = PartOf(secret, "data");
  const auto read = [&](const char* name) { return FromBase64(TextField(data, name)).value_or(""); };
  return {read("ca.crt"), read("ca.key"), read("tls.crt"), read("tls.key")};
}

Json NewCertificateSecret(std::string_view ns, std::string_view name, const CertificateSet& set) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", {{"name", name}, {"namespace", ns}}},
          {"type", "kubernetes.io/tls"},
          {"data", DataOf(set)}};
}

Json CertificateSecretPatch(const Json& secret, const CertificateSet& set) {
  return {{"metadata", {{"resourceVersion", VersionOf(secret)}}}, {"data", DataOf(set)}};
}

StatusOr<CertificateStep> NextCertificates(const CertificateSet& given, const std::vector<std::string>& names,
                                           WallTime now) {
  CertificateStep step{.set = given};
  Owned<X509> ca = ReadCertificate(given.ca);
  Owned<EVP_PKEY> ca_key = ReadKey(given.ca_key);
  const bool ca_is_whole =
      ca && ca_key && X509_check_ca(ca.get()) == 1 && X509_check_private_key(ca.get(), ca_key.get()) == 1;
  std::optional<WallTime> renew_ca = ca_is_whole ? RenewAt(ca.get(), now) : std::nullopt;
  if (!renew_ca || now >= *renew_ca) {
    if (!renew_ca) ca_key.reset(EVP_EC_gen("P-256"));  // an authority that is not valid loses its key
    ca = ca_key ? Issue(ca_key.get(), kAuthorityName, {nullptr, ca_key.get()}, {}, now, kAuthorityLife) : nullptr;
    if (!ca) return Failed("certificate authority");
    step.set.ca = PemOf(ca.get());
    step.set.ca_key = PemOf(ca_key.get());
    renew_ca = RenewAt(ca.get(), now);
  }

  Owned<X509> certificate = ReadCertificate(given.certificate);
  Owned<EVP_PKEY> key = ReadKey(given.key);
  const bool is_whole = certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1 &&
                        X509_verify(certificate.get(), ca_key.get()) == 1 &&
                        X509_check_host(certificate.get(), names.front().data(), names.front().size(), 0, nullptr) == 1;
  std::optional<WallTime> renew = is_whole ? RenewAt(certificate.get(), now) : std::nullopt;
  if (!renew || now >= *renew) {
    key.reset(EVP_EC_gen("P-256"));
    certificate =
        key ? Issue(key.get(), names.front().substr(0, 64), {ca.get(), ca_key.get()}, names, now, kLife) : nullptr;
    if (!certificate) return Failed("server certificate");
    step.set.certificate = PemOf(certificate.get());
    step.set.key = PemOf(key.get());
    renew = RenewAt(certificate.get(), now);
  }
  ERR_clear_error();
  step.changed = step.set != given;
  step.renew = std::min(*renew, *renew_ca);
  return step;
}

std::string BundleWith(std::string_view bundle, const std::string& ca, WallTime now) {
  const std::vector<std::string> held = CertificatesOf(bundle, now);
  if (std::find(held.begin(), held.end(), ca) != held.end()) return std::string(bundle);
  std::string with = ca;
  for (const std::string& other : held) with += other;
  return with;
}

Json BundlePatch(const Json& configuration, const std::string& ca, WallTime now) {
  const Json* given = FindField(configuration, "webhooks");
  if (given == nullptr || !given->is_array()) return Json();
  Json webhooks = *given;
  for (Json& webhook : webhooks) {
    const auto client = webhook.is_object() ? webhook.find("clientConfig") : webhook.end();
    if (client == webhook.end() || !client->is_object()) continue;
    const std::string bundle = FromBase64(TextField(*client, "caBundle")).value_or("");
    if (std::string with = BundleWith(bundle, ca, now); with != bundle) (*client)["caBundle"] = ToBase64(with);
  }
  if (webhooks == *given) return Json();
  return {{"metadata", {{"resourceVersion", VersionOf(configuration)}}}, {"webhooks", std::move(webhooks)}};
}

}  // namespace muster::controller
