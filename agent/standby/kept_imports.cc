// SPDX-License-Identifier: Apache-2.0
#include "agent/standby/kept_imports.h"

#include <algorithm>
#include <filesystem>

#include "base/environment.h"
#include "base/host_fs.h"
#include "base/replace_file.h"
#include "base/state_folder.h"
#include "base/text.h"

namespace muster::agent::standby {
namespace {

constexpr std::string_view kFirstLine = "muster imports 2";
constexpr size_t kLongestFile = 1 << 20, kMostFiles = 200;

bool IsDigest(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void RemoveOldest(const std::string& folder) {
  using Entry = std::pair<std::filesystem::file_time_type, std::filesystem::path>;
  std::vector<Entry> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    files.emplace_back(at->last_write_time(gone), at->path());
  }
  if (files.size() <= kMostFiles) return;
  std::sort(files.begin(), files.end());
  files.resize(files.size() - kMostFiles);
  for (const Entry& file : files) std::filesystem::remove(file.second, error);
}

StatusOr<std::string> Folder() {
  MUSTER_ASSIGN_OR_RETURN(std::string state, StateFolder(Environment::OfProcess()));
  return ImportsFolder(state);
}

}  // namespace

StatusOr<ScriptFacts> ParseScriptFacts(std::string_view body) {
  const size_t end = body.find('\0');
  ScriptFacts facts{std::string(body.substr(0, end)),
                    end == std::string_view::npos ? "" : std::string(body.substr(end + 1))};
  if (!IsDigest(facts.script) || !IsDigest(facts.versions)) {
    return absl::InvalidArgumentError("the probe of Python sends no digests");
  }
  return facts;
}

std::string FormatKeptImports(std::string_view versions, const std::vector<std::string>& names) {
  std::string text = fmt::format("{}\n{}\n", kFirstLine, versions);
  for (const std::string& name : names) {
    if (text.size() + name.size() + 1 > kLongestFile) break;
    text.append(name).push_back('\n');
  }
  return text;
}

std::vector<std::string> ParseKeptImports(std::string_view text, std::string_view versions) {
  const std::string head = fmt::format("{}\n{}\n", kFirstLine, versions);
  if (!text.starts_with(head) || text.size() > kLongestFile || !text.ends_with('\n')) return {};
  text.remove_prefix(head.size());
  if (text.empty()) return {};
  const std::vector<std::string_view> lines = Split(text.substr(0, text.size() - 1), '\n');
  return {lines.begin(), lines.end()};
}

std::vector<std::string> ReadKeptImports(const ScriptFacts& facts) {
  auto folder = Folder();
  if (!folder.ok()) return {};
  return ParseKeptImports(HostFs().Read(fmt::format("{}/{}", *folder, facts.script)).value_or(""), facts.versions);
}

Status KeepImports(const ScriptFacts& facts, const std::vector<std::string>& names) {
  MUSTER_ASSIGN_OR_RETURN(std::string folder, Folder());
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("making {}", folder));
  MUSTER_RETURN_IF_ERROR(ReplaceFile(fmt::format("{}/{}", folder, facts.script),
                                     FormatKeptImports(facts.versions, names), {.mode = 0600}));
  RemoveOldest(folder);
  return absl::OkStatus();
}

}  // namespace muster::agent::standby
