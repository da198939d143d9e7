// SPDX-License-Identifier: Apache-2.0
// Opens and reads TARGET/.muster/NAME, the files that Muster keeps in a target; and reads a file's time of change.
// Never follows a link and never waits for a pipe, even if one was put in the place of the file.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "base/descriptors.h"
#include "base/status.h"
#include "initializers/target/manifest.h"

namespace muster::initializers {

// Opens a file in the open folder `at`; `flags` are those of open(2). NotFound: there is none. FailedPrecondition: it
// is not a regular file; the message says to remove it.
StatusOr<Descriptor> OpenMetadataFile(int at, const std::string& name, int flags);

bool HasMetadataFile(const std::string& target, const std::string& name);
// Reads at most kLongestManifest bytes. Same errors as OpenMetadataFile.
StatusOr<std::string> ReadMetadataFile(const std::string& target, const std::string& name);
// Parses a file in the manifest's format. Errors of OpenMetadataFile; InvalidArgument from ReadManifest.
StatusOr<Manifest> ReadMetadataManifest(const std::string& target, const std::string& name);

inline int64_t ModifiedOf(const struct stat& facts) {  // ns since 1970
  return int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
}

}  // namespace muster::initializers
