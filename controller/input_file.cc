#include "controller/input_file.h"

#include <cerrno>
#include <cstdio>

#include "base/quoted.h"
#include "base/text.h"

namespace muster::controller {
namespace {

constexpr size_t kMostBytes = 64 << 20;

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
        fmt::format("{}: it has more than {} MiB, and is no file of jobs", Quoted(name), kMostBytes >> 20));
  }
  return file;
}

StatusOr<std::vector<InputFile>> ReadInputs(const std::vector<std::string>& names) {
  std::vector<InputFile> files;
  for (const std::string& name : names) {
    MUSTER_ASSIGN_OR_RETURN(InputFile file, ReadInput(name));
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace muster::controller
