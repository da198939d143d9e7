// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/base64.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kNames = {"service.ns.svc", "service.ns.svc.cluster.local", "127.1.2.3"};
const WallTime kNow = WallTime(std::chrono::seconds(1'700'000'000));
constexpr auto kDay = std::chrono::hours(24);

CertificateStep Next(const CertificateSet& given, WallTime now = kNow) {
  auto step = NextCertificates(given, kNames, now);
  EXPECT_TRUE(step.ok()) << step.status();
  return step.ok() ? *std::move(step) : CertificateStep();
}

std::shared_ptr<X509> Read(const std::string& pem) {
  const std::shared_ptr<BIO> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  return {PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free};
}

// Verifies `certificate` as a client does that trusts only `ca`.
bool Trusts(const std::string& ca, const std::string& certificate, WallTime now) {
  const auto root = Read(ca), leaf = Read(certificate);
  const std::shared_ptr<X509_STORE> store(X509_STORE_new(), X509_STORE_free);
  X509_STORE_add_cert(store.get(), root.get());
  const std::shared_ptr<X509_STORE_CTX> context(X509_STORE_CTX_new(), X509_STORE_CTX_free);
  X509_STORE_CTX_init(context.get(), store.get(), leaf.get(), nullptr);
  X509_STORE_CTX_set_purpose(context.get(), X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM* how = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(how, std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count());
  X509_VERIFY_PARAM_set_flags(how, X509_V_FLAG_X509_STRICT);
  return X509_verify_cert(context.get()) == 1;
}

TEST(Certificates, AreCreatedForTheNamesOfTheService) {
  const CertificateStep step = Next({});
  EXPECT_TRUE(step.changed);
  EXPECT_TRUE(Trusts(step.set.ca, step.set.certificate, kNow));
  EXPECT_FALSE(Trusts(Next({}).set.ca, step.set.certificate, kNow));
  const auto certificate = Read(step.set.certificate);
  for (const char* name : {"service.ns.svc", "service.ns.svc.cluster.local"}) {
    EXPECT_EQ(X509_check_host(certificate.get(), name, 0, 0, nullptr), 1) << name;
  }
  EXPECT_EQ(X509_check_ip_asc(certificate.get(), "127.1.2.3", 0), 1);
  EXPECT_EQ(X509_check_host(certificate.get(), "other.ns.svc", 0, 0, nullptr), 0);
  EXPECT_LT(step.renew, kNow + 365 * kDay);
  EXPECT_GT(step.renew, kNow + 240 * kDay);
}

TEST(Certificates, AreKeptThenRenewed) {
  const CertificateStep made = Next({});
  const CertificateStep kept = Next(made.set, made.renew - std::chrono::seconds(1));
  EXPECT_FALSE(kept.changed);
  EXPECT_EQ(kept.set, made.set);
  EXPECT_EQ(kept.renew, made.renew);

  const CertificateStep renewed = Next(made.set, made.renew);
  EXPECT_TRUE(renewed.changed);
  EXPECT_EQ(renewed.set.ca, made.set.ca);
  EXPECT_NE(renewed.set.certificate, made.set.certificate);
  EXPECT_TRUE(Trusts(made.set.ca, renewed.set.certificate, made.renew));
}

TEST(Certificates, ARenewedAuthorityIsTheSameOne) {
  const CertificateStep made = Next({});
  const WallTime later = kNow + 2500 * kDay;
  const CertificateStep renewed = Next(made.set, later);
  EXPECT_NE(renewed.set.ca, made.set.ca);
  EXPECT_EQ(renewed.set.ca_key, made.set.ca_key);
  EXPECT_TRUE(Trusts(made.set.ca, renewed.set.certificate, later));  // a client that knows only the old authority
  EXPECT_TRUE(Trusts(renewed.set.ca, renewed.set.certificate, later));
  // Long after its end no client trusts the authority: it gets a new key.
  const CertificateStep another = Next(made.set, kNow + 5000 * kDay);
  EXPECT_NE(another.set.ca_key, made.set.ca_key);
  EXPECT_TRUE(Trusts(another.set.ca, another.set.certificate, kNow + 5000 * kDay));
}

TEST(Certificates, WhatCannotBeUsedIsRecreated) {
  const CertificateSet good = Next({}).set, other = Next({}).set;
  struct Row {
    const char* what;
    CertificateSet given;
    bool same_authority;
  };
  for (const Row& row : std::vector<Row>{
           {"no certificate", {good.ca, good.ca_key, "", ""}, true},
           {"garbage", {good.ca, good.ca_key, "x", "-----BEGIN PRIVATE KEY-----\n"}, true},
           {"another's key", {good.ca, good.ca_key, good.certificate, other.key}, true},
           {"another authority's", {good.ca, good.ca_key, other.certificate, other.key}, true},
           {"no key of the authority", {good.ca, "", good.certificate, good.key}, false},
           {"another key of the authority", {good.ca, other.ca_key, good.certificate, good.key}, false},
           {"an authority that is none", {good.certificate, good.key, good.certificate, good.key}, false},
       }) {
    const CertificateStep step = Next(row.given);
    EXPECT_TRUE(step.changed) << row.what;
    EXPECT_EQ(step.set.ca == good.ca, row.same_authority) << row.what;
    EXPECT_TRUE(Trusts(step.set.ca, step.set.certificate, kNow)) << row.what;
    EXPECT_FALSE(Next(step.set).changed) << row.what;
  }
  auto elsewhere = NextCertificates(good, {"service.other.svc"}, kNow);
  ASSERT_TRUE(elsewhere.ok());
  EXPECT_TRUE(elsewhere->changed);  // the certificate does not name the new host
}

TEST(Certificates, AreWrittenToASecretAndReadBack) {
  const CertificateSet set = Next({}).set;
  Json secret = NewCertificateSecret("ns", "name", set);
  EXPECT_EQ(secret["type"], "kubernetes.io/tls");
  EXPECT_EQ(ReadCertificateSecret(secret), set);
  secret["metadata"]["resourceVersion"] = "7";
  const CertificateSet other = Next({}).set;
  const Json patch = CertificateSecretPatch(secret, other);
  EXPECT_EQ(patch["metadata"], Json::parse(R"({"resourceVersion": "7"})"));
  EXPECT_FALSE(patch.contains("type"));
  secret.merge_patch(patch);
  EXPECT_EQ(ReadCertificateSecret(secret), other);
  for (const char* wrong : {"{}", "5", R"({"data": []})", R"({"data": {"ca.crt": 5, "tls.crt": "!"}})"}) {
    EXPECT_EQ(ReadCertificateSecret(Json::parse(wrong)), CertificateSet()) << wrong;
  }
}

TEST(Certificates, BundlesKeepOtherAuthorities) {
  const std::string one = Next({}).set.ca, two = Next({}).set.ca;
  EXPECT_EQ(BundleWith("", one, kNow), one);
  EXPECT_EQ(BundleWith(one, one, kNow), one);
  EXPECT_EQ(BundleWith(one, two, kNow), two + one);
  EXPECT_EQ(BundleWith(two + one, one, kNow), two + one);
  EXPECT_EQ(BundleWith("garbage", one, kNow), one);
  EXPECT_EQ(BundleWith(one, two, kNow + 5000 * kDay), two);  // the first certificate has expired
}

TEST(Certificates, ThePatchOfAConfiguration) {
  const std::string ca = Next({}).set.ca;
  Json configuration = Json::parse(R"({"metadata": {"name": "n", "resourceVersion": "7"}, "webhooks": [
    {"name": "a", "clientConfig": {"service": {"name": "s"}}}, {"name": "b", "clientConfig": {"url": "u"}}]})");
  const Json patch = BundlePatch(configuration, ca, kNow);
  EXPECT_EQ(patch["metadata"], Json::parse(R"({"resourceVersion": "7"})"));
  ASSERT_EQ(patch["webhooks"].size(), 2);
  for (const Json& webhook : patch["webhooks"]) {
    EXPECT_EQ(*FromBase64(webhook["clientConfig"]["caBundle"].get<std::string>()), ca);
  }
  EXPECT_EQ(patch["webhooks"][0]["clientConfig"]["service"]["name"], "s");
  configuration.merge_patch(patch);
  EXPECT_TRUE(BundlePatch(configuration, ca, kNow).is_null());
  for (const char* wrong : {"{}", R"({"metadata": {}, "webhooks": {}})", R"({"metadata": {}, "webhooks": [5, {}]})"}) {
    EXPECT_TRUE(BundlePatch(Json::parse(wrong), ca, kNow).is_null()) << wrong;
  }
}

}  // namespace
}  // namespace muster::controller
