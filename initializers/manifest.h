// The completion manifest, TARGET/.muster/manifest.json: written last, so that its presence says that everything named
// in it is there. What `verify` and the next start read. docs/initializers.md has its layout.
//
// Pure: text <-> struct; files are staging.h's. The file is outside bytes when read: it is bounded
// (kLongestManifest) and any field may be wrong.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "initializers/manifest_files.h"

namespace muster::initializers {

inline constexpr char kManifestName[] = "manifest.json";     // in kOwnFolder
inline constexpr size_t kLongestManifest = size_t{1} << 30;  // bytes; about four million files

struct Manifest {
  int schema = 1;         // a new key does not change it, a new meaning of an old key does
  std::string source;     // the URI as given
  std::string version;    // of the whole source where it has one: the commit; else empty
  std::string endpoint;   // which server
  std::string selection;  // what of it was wanted: includes and ignores, in one canonical text
  std::string tool;       // "muster 0.1.0 (commit)"
  int64_t completed_unix_ms = 0;
  ManifestFiles files;  // by path
  bool operator==(const Manifest&) const = default;
};

// JSON in UTF-8, each file on a line of its own, sorted by the bytes of its path: it can be searched and compared by
// line. Paths are UTF-8 (CheckEntryPath); in other texts what is none becomes U+FFFD.
std::string WriteManifest(const Manifest& manifest);
// The same in pieces of some KiB; its first error ends it.
Status WriteManifest(const Manifest& manifest, const std::function<Status(std::string_view)>& piece);

// InvalidArgument, with the place: no JSON, a schema we do not know, a field that is missing, twice there or of another
// kind, a path that CheckEntryPath refuses, a hash that ParseExpectation refuses, files that are not sorted or twice
// there. Fields that we do not know are left out.
StatusOr<Manifest> ReadManifest(std::string_view text);
// The same of what is left of a file; who opened it bounds its length.
StatusOr<Manifest> ReadManifest(FILE* file);

}  // namespace muster::initializers
