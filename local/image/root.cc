// SPDX-License-Identifier: Apache-2.0
#include "local/image/root.h"

#include <unistd.h>

#include <filesystem>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/plan/pod_fields.h"

namespace muster::local {

using namespace controller;

namespace {

// The PATH that container runtimes set if an image sets none.
constexpr std::string_view kUsualPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

bool IsOfMachine(std::string_view entry) {
  return entry.starts_with("PATH=") || entry.starts_with("HOME=") || entry.starts_with("LANG=");
}

}  // namespace

const ImageRoot* RootOfImage(const ImageRoots& roots, std::string_view image) {
  for (const std::string_view name : {image, ImageName(image), std::string_view()}) {
    if (const auto found = roots.find(name); found != roots.end()) return &found->second;
  }
  return nullptr;
}

ImageFlag ReadImageFlag(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || text[0] == '/' || text[0] == '.')
    return {.image = "", .path = text};
  return {.image = text.substr(0, equals), .path = text.substr(equals + 1)};
}

StatusOr<ImageRoot> ReadImageRoot(const std::string& path) {
  std::error_code error;
  const std::string whole = std::filesystem::canonical(path, error).string();
  if (error) return absl::InvalidArgumentError(fmt::format("--image-root {}: {}", Quoted(path), error.message()));
  if (!std::filesystem::is_directory(whole, error)) {
    return absl::InvalidArgumentError(
        fmt::format("--image-root {}: it is not a folder; a file of an image is given by --oci", Quoted(path)));
  }
  if (access(whole.c_str(), R_OK | X_OK) != 0) {
    return absl::InvalidArgumentError(fmt::format("--image-root {}: it cannot be entered and read", Quoted(path)));
  }
  return ImageRoot{.folder = whole};
}

std::vector<std::string> EnvironmentInRoot(const std::vector<std::string>& environment, const ImageRoot& root) {
  std::vector<std::string> entries = {std::string(kUsualPath), "HOME=/tmp", "USER=user"};
  for (const std::string& entry : environment) {
    if (!IsOfMachine(entry)) entries.push_back(entry);
  }
  for (const std::string& entry : root.environment) {
    const std::string name = entry.substr(0, entry.find('=') + 1);
    std::erase_if(entries, [&name](const std::string& other) { return other.starts_with(name); });
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace muster::local
