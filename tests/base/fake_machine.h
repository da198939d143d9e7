// SPDX-License-Identifier: Apache-2.0
// A folder that looks like a machine, for HostFs. Removed with the object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/environment.h"
#include "base/host_fs.h"

namespace muster {

class FakeMachine {
 public:
  FakeMachine() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster_machine_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~FakeMachine() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  FakeMachine& File(const std::string& path, const std::string& content = "") {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << content;
    return *this;
  }
  FakeMachine& Program(const std::string& path, const std::string& content = "#!/bin/sh\n") {
    File(path, content);
    std::filesystem::permissions(root_ + path, std::filesystem::perms::all);
    return *this;
  }
  FakeMachine& Link(const std::string& path, const std::string& target) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::filesystem::create_symlink(root_ + target, root_ + path);
    return *this;
  }
  FakeMachine& Set(const std::string& name, const std::string& value) {
    environment_.Set(name, value);
    return *this;
  }

  HostFs fs() const { return HostFs(root_); }
  const Environment& environment() const { return environment_; }

 private:
  std::string root_;
  Environment environment_;
};

}  // namespace muster
