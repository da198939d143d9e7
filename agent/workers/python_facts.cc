// SPDX-License-Identifier: Apache-2.0
#include "agent/workers/python_facts.h"

#include <algorithm>
#include <vector>

#include "base/path_search.h"
#include "base/text.h"

namespace muster::agent {
namespace {

std::string FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "." : std::string(path.substr(0, std::max<size_t>(slash, 1)));
}
std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsVirtual(const std::string& python, const HostFs& fs) {
  return fs.Exists(FolderOf(python) + "/../pyvenv.cfg") || fs.Exists(FolderOf(python) + "/pyvenv.cfg");
}

bool SamePython(const std::string& one, const std::string& other, const HostFs& fs) {
  auto same = [&](const std::string& a, const std::string& b) {
    auto identity = fs.Identity(a);
    return identity && identity == fs.Identity(b);
  };
  if (same(FolderOf(one), FolderOf(other))) return true;
  return same(one, other) && !IsVirtual(one, fs) && !IsVirtual(other, fs);
}

// The version in torch/version.py ("2.15.0+cu132"); nullopt: no such file, or no version that can be read.
struct Version {
  int major = 0, minor = 0;
};
std::optional<Version> TorchIn(const std::string& packages, const HostFs& fs) {
  const std::string text = fs.Read(packages + "/torch/version.py").value_or("");
  for (std::string_view line : Split(text, '\n')) {
    if (!line.starts_with("__version__")) continue;
    const size_t begin = line.find_first_of("'\"");
    if (begin == std::string_view::npos) return std::nullopt;
    std::vector<std::string_view> parts = Split(line.substr(begin + 1), '.');
    if (parts.size() < 2) return std::nullopt;
    const auto major = ParseInt(parts[0]);
    const auto minor = ParseInt(parts[1].substr(0, parts[1].find_first_not_of("0123456789")));
    if (!major || !minor) return std::nullopt;
    return Version{static_cast<int>(*major), static_cast<int>(*minor)};
  }
  return std::nullopt;
}

// Adds the folders where a python of `prefix` (the folder above its bin) may have packages.
void AddPackages(const std::string& prefix, const HostFs& fs, std::vector<std::string>* folders) {
  for (const char* lib : {"lib", "lib64", "local/lib"}) {
    const std::string above = fmt::format("{}/{}", prefix, lib);
    for (const std::string& version : fs.List(above)) {
      if (!version.starts_with("python") && !version.starts_with("pypy")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        folders->push_back(fmt::format("{}/{}/{}", above, version, packages));
      }
    }
  }
}

}  // namespace

std::optional<std::string> OtherPythonNote(const CommandSurroundings& surroundings, std::string_view launcher) {
  if (NameOf(launcher).starts_with("python") || launcher.find('/') != std::string_view::npos) return std::nullopt;
  if (auto chosen = surroundings.environment.Get("PYTHON_EXEC"); chosen && !chosen->empty()) return std::nullopt;
  auto python = FindPython(surroundings, launcher);
  if (!python.ok()) return std::nullopt;
  const std::string path = surroundings.environment.Get("PATH").value_or("");
  const std::string torchrun = FindOnPath(launcher, path, surroundings.fs, {surroundings.self});
  const std::string why = torchrun.empty() ? "the first one on PATH" : fmt::format("which runs {}", torchrun);
  std::string expected, whose;
  if (auto environment = surroundings.environment.Get("VIRTUAL_ENV"); environment && !environment->empty()) {
    for (const char* name : {"python3", "python"}) {
      const std::string there = fmt::format("{}/bin/{}", *environment, name);
      if (expected.empty() && surroundings.fs.IsExecutable(there)) expected = there;
    }
    whose = "VIRTUAL_ENV has another one";
  }
  if (expected.empty() || SamePython(*python, expected, surroundings.fs)) {
    expected = FindOnPath("python3", path, surroundings.fs);
    whose = "the first python3 on PATH is another one";
  }
  if (expected.empty() || SamePython(*python, expected, surroundings.fs)) return std::nullopt;
  return fmt::format("the workers run with {}, {}; {}: PYTHON_EXEC={} chooses that", *python, why, whose, expected);
}

RecorderNames RecorderNamesOf(const CommandSurroundings& surroundings, const std::string& python) {
  const HostFs& fs = surroundings.fs;
  std::vector<std::string> folders;
  const std::string python_path = surroundings.environment.Get("PYTHONPATH").value_or("");
  for (std::string_view folder : Split(python_path, ':')) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  AddPackages(FolderOf(python) + "/..", fs, &folders);
  if (auto home = surroundings.environment.Get("HOME"); home && !home->empty())
    AddPackages(*home + "/.local", fs, &folders);
  bool older = false, newer = false;
  for (const std::string& folder : folders) {
    auto version = TorchIn(folder, fs);
    if (!version) continue;
    const bool renamed = version->major > 2 || (version->major == 2 && version->minor >= 8);
    (renamed ? newer : older) = true;
  }
  if (older == newer) return RecorderNames::kBoth;
  return newer ? RecorderNames::kNew : RecorderNames::kOld;
}

}  // namespace muster::agent
