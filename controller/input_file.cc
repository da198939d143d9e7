// SPDX-License-Identifier: Apache-2.0
#include "controller/input_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/quoted.h"
#include "base/text.h"

namespace muster::controller {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = 64 << 20;

// As kubectl does: not those of folders below.
StatusOr<std::vector<std::string>> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string kind = it->path().extension().string();
    if (kind == ".yaml" || kind == ".yml" || kind == ".json") files.push_back(it->path().string());
  }
  if (error) return absl::InvalidArgumentError(fmt::format("{}: {}", Quoted(folder), error.message()));
  if (files.empty()) {
    return absl::InvalidArgumentError(fmt::format("{}: the folder has no .yaml, .yml or .json file", Quoted(folder)));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

StatusOr<InputFile> ReadInput(const std::string& name) {
  const bool is_stdin = name == "-";
  std::FILE* stream = is_stdin ? stdin : std::fopen(name.c_str(), "re");
  if (stream == nullptr) return ErrnoStatus(errno, fmt::format("{}: cannot open it", Quoted(name)));
  InputFile file{.name = is_stdin ? "stdin" : name};
  char bytes[64 << 10];
  size_t count = 0;
  while ((count = std::fread(bytes, 1, sizeof bytes, stream)) > 0 && file.text.size() <= kMostBytes) {
    file.text.append(bytes, count);
  }
  const int error = std::ferror(stream) == 0 ? 0 : errno;
  if (!is_stdin) std::fclose(stream);
  if (error != 0) return ErrnoStatus(error, fmt::format("{}: cannot read it", Quoted(name)));
  if (file.text.size() > kMostBytes) {
    return absl::InvalidArgumentError(
        fmt::format("{}: it has more than {} MiB, and is not a file of jobs", Quoted(name), kMostBytes >> 20));
  }
  return file;
}

StatusOr<std::vector<InputFile>> ReadInputs(const std::vector<std::string>& names) {
  std::vector<InputFile> files;
  for (const std::string& name : names) {
    std::vector<std::string> all = {name};
    std::error_code ignored;
    if (fs::is_directory(name, ignored)) {
      MUSTER_ASSIGN_OR_RETURN(all, FilesIn(name));
    }
    for (const std::string& one : all) {
      MUSTER_ASSIGN_OR_RETURN(InputFile file, ReadInput(one));
      files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace muster::controller
