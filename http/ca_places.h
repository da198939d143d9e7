// Where certificates to trust are, as OpenSSL takes them: a file with all of them, and folders where each is under the
// hash of its subject (5ed36f99.0), as `openssl rehash` lays them.
#pragma once

#include <string>
#include <string_view>

namespace muster::http {

struct CaPlaces {
  std::string file;     // empty: the system's
  std::string folders;  // with ':' between; empty: the system's
  std::string problem;  // why nothing will be trusted, for people
};

// `bundle`: a file, or a folder. `more`: folders that may hold nothing, or not be there. `system`: the system's.
CaPlaces FindCaPlaces(const std::string& bundle, std::string_view more, std::string_view system);

}  // namespace muster::http
