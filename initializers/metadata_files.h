// What Muster keeps in a target, opened and read: TARGET/.muster/NAME; and when a file was changed last. Whatever
// somebody has laid in its place, no link is followed and no pipe waited for.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "base/descriptors.h"
#include "base/status.h"
#include "initializers/manifest.h"

namespace muster::initializers {

// A file in the open folder `at`; `flags` are open()'s. NotFound: there is none. FailedPrecondition: what is there is
// no file; says to remove it.
StatusOr<Descriptor> OpenMetadataFile(int at, const std::string& name, int flags);

bool HasMetadataFile(const std::string& target, const std::string& name);
// At most kLongestManifest bytes. Errors as OpenMetadataFile's.
StatusOr<std::string> ReadMetadataFile(const std::string& target, const std::string& name);
// Of the manifest's kind, read as it is parsed. Errors as OpenMetadataFile's; InvalidArgument: ReadManifest's.
StatusOr<Manifest> ReadMetadataManifest(const std::string& target, const std::string& name);

inline int64_t ModifiedOf(const struct stat& facts) {  // ns since 1970
  return int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
}

}  // namespace muster::initializers
