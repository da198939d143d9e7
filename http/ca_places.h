// SPDX-License-Identifier: Apache-2.0
// Finds the certificates to trust, in the two forms that OpenSSL reads: one file with all of them, or folders where
// each certificate is named by the hash of its subject (5ed36f99.0), as `openssl rehash` names them.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace muster::http {

struct CaPlaces {
  std::string file;     // empty: the system's
  std::string folders;  // separated by ':'; empty: the system's
  std::string problem;  // why no certificate will be trusted, for people; empty: no problem
};

// Where a distribution keeps the certificates that all programs trust.
struct SystemCa {
  std::string folder;  // empty: none
  std::string file;    // empty: libcurl's default
};
// `folder`: libcurl's default. The file is the first of `files` that can be read, by default those of Debian, Alpine
// and Arch, of Fedora and RHEL, of SUSE, and of LibreSSL: a packaged program runs on distributions other than its
// library's.
SystemCa FindSystemCa(std::string_view folder, std::initializer_list<const char*> files = {
                                                   "/etc/ssl/certs/ca-certificates.crt",
                                                   "/etc/pki/tls/certs/ca-bundle.crt",
                                                   "/etc/ssl/ca-bundle.pem",
                                                   "/etc/ssl/cert.pem",
                                               });

// `bundle`: a file or a folder; empty: the system's file. `more`: folders with ':' between, may be empty or missing.
CaPlaces FindCaPlaces(const std::string& bundle, std::string_view more, const SystemCa& system);

}  // namespace muster::http
