// What Muster keeps in a target, read: TARGET/.muster/NAME, and when a file was changed last.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "base/status.h"
#include "initializers/manifest.h"

namespace muster::initializers {

// At most kLongestManifest bytes; no link is followed. NotFound: there is none.
StatusOr<std::string> ReadOwnFile(const std::string& target, const std::string& name);
// Of the manifest's kind, read as it is parsed. NotFound as above; InvalidArgument: ReadManifest's.
StatusOr<Manifest> ReadOwnManifest(const std::string& target, const std::string& name);

inline int64_t ModifiedOf(const struct stat& facts) {  // ns since 1970
  return int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
}

}  // namespace muster::initializers
