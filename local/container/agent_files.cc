// SPDX-License-Identifier: Apache-2.0
#include "local/container/agent_files.h"

#include <unistd.h>

#include <filesystem>

#include "base/text.h"

namespace muster::local {
namespace {

namespace fs = std::filesystem;

bool IsSame(const fs::path& a, const fs::path& b) {
  std::error_code error;
  const auto size = fs::file_size(a, error), other_size = fs::file_size(b, error);
  if (error || size != other_size) return false;
  const auto time = fs::last_write_time(a, error), other_time = fs::last_write_time(b, error);
  return !error && time == other_time;
}

}  // namespace

AgentFiles::AgentFiles(const std::string& state, const std::string& binary) : binary_(binary) {
  const fs::path copy = fs::path(state) / "agent" / "muster";
  std::error_code error;
  copied_ = IsSame(binary, copy);
  if (!copied_) {
    const fs::path temporary = fs::path(state) / "agent" / fmt::format(".muster.{}", getpid() % 64);
    fs::create_directories(copy.parent_path(), error);
    if (!error) fs::copy_file(binary, temporary, fs::copy_options::overwrite_existing, error);
    if (!error) fs::last_write_time(temporary, fs::last_write_time(binary, error), error);
    if (!error) fs::permissions(temporary, fs::perms(0755), error);
    if (!error) fs::rename(temporary, copy, error);
    copied_ = !error;
    if (error) fs::remove(temporary, error);
  }
  if (copied_) binary_ = copy.string();
}

void AgentFiles::PutInto(const std::string& folder) const {
  if (!copied_) return;
  if (link(binary_.c_str(), (folder + "/muster").c_str()) != 0) return;
  for (const char* name : {"torchrun", "muster-rsh"}) {
    if (symlink("muster", fmt::format("{}/{}", folder, name).c_str()) != 0) return;
  }
}

}  // namespace muster::local
