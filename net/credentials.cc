// SPDX-License-Identifier: Apache-2.0
#include "net/credentials.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/text.h"

namespace muster::net {
namespace {

constexpr size_t kMaxFile = size_t{1} << 20;

StatusOr<std::string> ReadSmallFile(const char* what, const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not block the agent
  if (fd < 0) {
    return absl::InvalidArgumentError(fmt::format("{} {}: {}; give a file that can be read", what, path,
                                                  Message(ErrnoStatus(errno, "cannot be opened"))));
  }
  std::string text(kMaxFile + 1, '\0');
  size_t length = 0;
  int error = 0;
  while (length < text.size()) {
    ssize_t got = read(fd, text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    length += static_cast<size_t>(got);
  }
  close(fd);
  if (error != 0) {
    return absl::InvalidArgumentError(fmt::format("{} {}: {}; give a file that can be read", what, path,
                                                  Message(ErrnoStatus(error, "cannot be read"))));
  }
  if (length > kMaxFile) {
    return absl::InvalidArgumentError(fmt::format("{} {} is larger than {} bytes", what, path, kMaxFile));
  }
  text.resize(length);
  if (Strip(text).empty())
    return absl::InvalidArgumentError(
        fmt::format("{} {} is empty; give the one that was made for this job", what, path));
  return text;
}

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio Open(const std::string& text) { return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free}; }

Certificate FirstCertificate(const std::string& pem) {
  return {PEM_read_bio_X509(Open(pem).get(), nullptr, nullptr, nullptr), &X509_free};
}

}  // namespace

Status CheckTls(const Credentials& credentials) {
  if (!credentials.tls()) return absl::OkStatus();
  char no_password[] = "";  // otherwise OpenSSL asks on the terminal
  Certificate certificate = FirstCertificate(credentials.tls_cert);
  PrivateKey key(PEM_read_bio_PrivateKey(Open(credentials.tls_key).get(), nullptr, nullptr, no_password),
                 &EVP_PKEY_free);
  Certificate authority = FirstCertificate(credentials.tls_ca);
  bool belong = certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!certificate) return absl::InvalidArgumentError("tls_cert is not a certificate in PEM form");
  if (!key) return absl::InvalidArgumentError("tls_key is not a private key in PEM form without a password");
  if (!authority) return absl::InvalidArgumentError("tls_ca is not a certificate in PEM form");
  if (!belong) return absl::InvalidArgumentError("tls_key is not the key of tls_cert");
  return absl::OkStatus();
}

StatusOr<Credentials> ReadCredentials(const CredentialFiles& files) {
  Credentials credentials;
  if (!files.token.empty()) {
    MUSTER_ASSIGN_OR_RETURN(std::string token, ReadSmallFile("token file", files.token));
    credentials.token = std::string(Strip(token));
    if (credentials.token.size() > 4096 || !IsVisible(credentials.token)) {
      return absl::InvalidArgumentError(
          fmt::format("token file {} must hold one word of at most 4096 printable ASCII characters", files.token));
    }
  }
  int given = !files.tls_cert.empty() + !files.tls_key.empty() + !files.tls_ca.empty();
  if (given == 0) return credentials;
  if (given != 3) {
    std::string missing;
    if (files.tls_cert.empty()) missing += " tls_cert";
    if (files.tls_key.empty()) missing += " tls_key";
    if (files.tls_ca.empty()) missing += " tls_ca";
    return absl::InvalidArgumentError(fmt::format("tls_cert, tls_key and tls_ca belong together; missing:{}", missing));
  }
  MUSTER_ASSIGN_OR_RETURN(credentials.tls_cert, ReadSmallFile("tls_cert", files.tls_cert));
  MUSTER_ASSIGN_OR_RETURN(credentials.tls_key, ReadSmallFile("tls_key", files.tls_key));
  MUSTER_ASSIGN_OR_RETURN(credentials.tls_ca, ReadSmallFile("tls_ca", files.tls_ca));
  MUSTER_RETURN_IF_ERROR(CheckTls(credentials));
  return credentials;
}

bool SameToken(std::string_view expected, std::string_view given) {
  unsigned difference = expected.size() == given.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^
                  static_cast<unsigned char>(expected.empty() ? 0 : expected[i % expected.size()]);
  }
  return difference == 0;
}

}  // namespace muster::net
