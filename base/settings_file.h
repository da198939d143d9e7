// SPDX-License-Identifier: Apache-2.0
// Small files of settings, tokens and certificates.
#pragma once

#include <string>

#include "base/status.h"

namespace muster {

// Reads the whole file. NotFound: no such file. InvalidArgument: longer than 1 MiB. Every error names the path.
StatusOr<std::string> ReadSettingsFile(const std::string& path);

}  // namespace muster
