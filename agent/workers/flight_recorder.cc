// SPDX-License-Identifier: Apache-2.0
#include "agent/workers/flight_recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptors.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr std::string_view kPipe = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE";
constexpr std::string_view kDumpNames[] = {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"};
constexpr std::string_view kEntries = "2000";  // the number that PyTorch suggests

}  // namespace

std::vector<std::pair<std::string, std::string>> FlightRecorderVariables(const Environment& agent_environment,
                                                                         const std::string& folder,
                                                                         RecorderNames names) {
  std::vector<std::pair<std::string, std::string>> variables;
  if (folder.empty()) return variables;
  const struct {
    std::string_view name, old_name;  // old_name empty: the setting has one name
    bool renamed = true;              // true: PyTorch reads one name; false: some parts read one, some the other
    std::string value;
  } settings[] = {{kPipe, "", true, folder + "/"},
                  {kDumpNames[0], kDumpNames[1], true, folder + "/nccl_trace_rank_"},
                  {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE", true, std::string(kEntries)},
                  {"TORCH_FR_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT", false, "1"}};
  for (const auto& setting : settings) {
    const bool one_name = setting.old_name.empty();
    if (agent_environment.Get(setting.name)) continue;
    if (!one_name && agent_environment.Get(setting.old_name)) continue;
    if (one_name || !setting.renamed || names != RecorderNames::kOld) {
      variables.emplace_back(setting.name, setting.value);
    }
    if (!one_name && (!setting.renamed || names != RecorderNames::kNew)) {
      variables.emplace_back(setting.old_name, setting.value);
    }
  }
  return variables;
}

std::string MakeFlightRecorderFolder(const std::string& attempt_folder) {
  if (attempt_folder.empty()) return "";
  std::string folder = attempt_folder + "/flight_recorder";
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) return "";
  std::string probe = folder + "/probe.pipe";
  if (mkfifo(probe.c_str(), 0600) != 0) {
    rmdir(folder.c_str());
    return "";
  }
  unlink(probe.c_str());
  return folder;
}

std::optional<FlightRecorder> FlightRecorderOf(const Environment& environment) {
  auto prefix = environment.Get(kPipe);
  auto rank = environment.Get("RANK");
  if (!prefix || prefix->empty() || !rank) return std::nullopt;
  FlightRecorder recorder;
  recorder.pipe = fmt::format("{}{}.pipe", *prefix, *rank);
  for (std::string_view name : kDumpNames) {
    auto dump = environment.Get(name);
    if (dump && !dump->empty() && recorder.dump.empty()) recorder.dump = *dump + *rank;
  }
  return recorder;
}

Status AskForDump(const std::string& pipe) {
  Descriptor fd(open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd.ok()) return ErrnoStatus(errno, pipe);  // ENXIO: the pipe has no reader
  struct stat facts {};
  if (fstat(fd.get(), &facts) != 0 || !S_ISFIFO(facts.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("{}: is not a pipe", pipe));
  }
  if (write(fd.get(), "1\n", 2) != 2) return ErrnoStatus(errno, pipe);
  return absl::OkStatus();
}

}  // namespace muster::agent
