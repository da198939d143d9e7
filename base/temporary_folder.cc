// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"

namespace muster {

std::vector<std::string> TemporaryFolders(const std::optional<std::string>& tmpdir) {
  std::vector<std::string> folders;
  if (tmpdir && !tmpdir->empty()) {
    std::error_code error;
    const auto whole = std::filesystem::absolute(*tmpdir, error);
    if (!error) folders.push_back(whole.string());
  }
  for (const char* folder : {"/tmp", "/var/tmp"}) {
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.emplace_back(folder);
  }
  return folders;
}

StatusOr<TemporaryFolder> MakeTemporaryFolder(std::string_view prefix, const std::vector<std::string>& folders) {
  std::vector<std::string> reasons;
  int error = ENOENT;
  for (const std::string& above : folders) {
    std::string path = fmt::format("{}/{}XXXXXX", above, prefix);
    if (mkdtemp(path.data()) != nullptr) return TemporaryFolder{path, Join(reasons, "; ")};
    error = errno;
    reasons.emplace_back(Message(ErrnoStatus(error, above)));
  }
  return Status(ErrnoStatus(error, "").code(), Join(reasons, "; "));
}

}  // namespace muster
