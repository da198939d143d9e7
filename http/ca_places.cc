// SPDX-License-Identifier: Apache-2.0
#include "http/ca_places.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/folder_names.h"
#include "base/text.h"

namespace muster::http {
namespace {

constexpr size_t kHashDigits = 8;

bool IsFolder(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool IsHashed(std::string_view name) {
  constexpr std::string_view kHex = "0123456789abcdef", kDigits = "0123456789";
  return name.size() > kHashDigits + 1 && name[kHashDigits] == '.' &&
         name.substr(0, kHashDigits).find_first_not_of(kHex) == std::string_view::npos &&
         name.substr(kHashDigits + 1).find_first_not_of(kDigits) == std::string_view::npos;
}

bool HasHashed(const std::string& folder) {
  const auto names = NamesIn(AT_FDCWD, folder, folder);
  return names.ok() && std::any_of(names->begin(), names->end(), IsHashed);
}

}  // namespace

SystemCa FindSystemCa(std::string_view folder, std::initializer_list<const char*> files) {
  SystemCa system{.folder = std::string(folder)};
  for (const char* file : files) {
    if (access(file, R_OK) != 0) continue;
    system.file = file;
    break;
  }
  return system;
}

CaPlaces FindCaPlaces(const std::string& bundle, std::string_view more, const SystemCa& system) {
  CaPlaces places;
  std::vector<std::string> folders;
  if (bundle.empty()) {
    places.file = system.file;
  } else if (!IsFolder(bundle)) {
    places.file = bundle;
  } else if (HasHashed(bundle)) {
    folders.push_back(bundle);
  } else {
    places.file = bundle;  // a folder cannot be read as a file, so every connection fails
    places.problem =
        fmt::format("{} has no certificate under its hash: run openssl rehash on it, or name a file", bundle);
  }
  if (!more.empty()) folders.emplace_back(more);
  if (!folders.empty() && !system.folder.empty()) folders.emplace_back(system.folder);
  places.folders = Join(folders, ":");
  return places;
}

}  // namespace muster::http
