// Finds the certificates to trust, in the two forms that OpenSSL reads: one file with all of them, or folders where
// each certificate is named by the hash of its subject (5ed36f99.0), as `openssl rehash` names them.
#pragma once

#include <string>
#include <string_view>

namespace muster::http {

struct CaPlaces {
  std::string file;     // empty: the system's
  std::string folders;  // separated by ':'; empty: the system's
  std::string problem;  // why no certificate will be trusted, for people; empty: no problem
};

// `bundle`: a file or a folder. `more`: folders with ':' between, may be empty or missing. `system`: the system's one.
CaPlaces FindCaPlaces(const std::string& bundle, std::string_view more, std::string_view system);

}  // namespace muster::http
