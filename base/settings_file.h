// Small files of settings, tokens and certificates.
#pragma once

#include <string>

#include "base/status.h"

namespace muster {

// All of it, at most 1 MiB. NotFound: there is none. Every error names the path.
StatusOr<std::string> ReadSettingsFile(const std::string& path);

}  // namespace muster
