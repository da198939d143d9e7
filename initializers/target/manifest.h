// SPDX-License-Identifier: Apache-2.0
// The completion manifest, TARGET/.muster/manifest.json. It is written last: if it is present, every file that it names
// was in place. `verify` and the next start read it. docs/initializers.md has its layout.
//
// Pure: text <-> struct; staging.h does the file I/O. When read, the file is untrusted input: its length is bounded
// (kLongestManifest), and any field may be wrong.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "initializers/target/manifest_files.h"

namespace muster::initializers {

inline constexpr char kManifestName[] = "manifest.json";     // in kOwnFolder
inline constexpr size_t kLongestManifest = size_t{1} << 30;  // bytes; about four million files

struct Manifest {
  int schema = 1;         // grows if an old key gets a new meaning, not for a new key
  std::string source;     // the URI as given
  std::string version;    // of the whole source if it has one: the commit; else empty
  std::string endpoint;   // URL of the server
  std::string selection;  // the wanted part of the source: includes and ignores, in one canonical text
  std::string tool;       // "muster 0.1.0 (commit)"
  int64_t completed_unix_ms = 0;
  ManifestFiles files;  // by path
  bool operator==(const Manifest&) const = default;
};

// JSON in UTF-8, each file on its own line, sorted by the bytes of the path, so that it can be searched and compared by
// line. Paths are UTF-8 (CheckEntryPath); in other texts, bytes that are not UTF-8 become U+FFFD.
std::string WriteManifest(const Manifest& manifest);
// Writes the same text in pieces of some KiB; the first error of `piece` ends it and is returned.
Status WriteManifest(const Manifest& manifest, const std::function<Status(std::string_view)>& piece);

// InvalidArgument, with the place: no JSON; an unknown schema; a field that is missing, given twice or of another type;
// a path that CheckEntryPath refuses; a hash that ParseExpectation refuses; files unsorted or twice. Unknown fields are
// ignored.
StatusOr<Manifest> ReadManifest(std::string_view text);
// Reads the rest of an open file; the caller bounds its length.
StatusOr<Manifest> ReadManifest(FILE* file);

}  // namespace muster::initializers
