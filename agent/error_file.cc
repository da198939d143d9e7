// SPDX-License-Identifier: Apache-2.0
#include "agent/error_file.h"

#include <cerrno>
#include <fstream>

#include "base/clock.h"
#include "base/environment.h"
#include "base/host_fs.h"
#include "base/host_names.h"
#include "base/json_fields.h"
#include "base/log.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr int kErrorFileLevels = 64;  // a worker may write anything into its error file

// The exit code as Python's subprocess gives it: -9 for SIGKILL.
int PythonsCode(const WorkerFailure& failure) { return failure.signal != 0 ? -failure.signal : failure.exit_code; }

}  // namespace

std::optional<std::string> ErrorFileText(const JobEnd& end, const std::optional<std::string>& worker_file,
                                         int64_t unix_ms) {
  if (end.exit_code == 0) return std::nullopt;
  const std::optional<WorkerFailure> cause = end.verdict ? end.verdict->root_cause : std::nullopt;
  if (cause && worker_file) {
    StatusOr<Json> copy = ReadJson(*worker_file, kErrorFileLevels);
    const Json* message = copy.ok() ? FindField(*copy, "message") : nullptr;
    if (message != nullptr) {
      if (message->is_object()) (*copy)["message"]["errorCode"] = PythonsCode(*cause);
      return WriteJson(*copy);
    }
  }
  const std::string& reason = end.verdict ? end.verdict->reason : end.reason;
  const bool told = cause && !cause->message.empty();
  const int64_t when = cause && cause->unix_millis > 0 ? cause->unix_millis : unix_ms;
  Json message;
  message["message"] = told ? cause->message : reason;
  message["extraInfo"]["py_callstack"] =
      cause && !cause->stderr_tail.empty() ? Join(cause->stderr_tail, "\n") : message["message"].get<std::string>();
  message["extraInfo"]["timestamp"] = std::to_string(when / 1000);
  message["errorCode"] = cause ? PythonsCode(*cause) : end.exit_code;
  return WriteJson(Json{{"message", message}});
}

void LeaveErrorFile(const JobEnd& end, Wire wire) {
  const std::string path = Environment::OfProcess().Get("TORCHELASTIC_ERROR_FILE").value_or("");
  if (path.empty() || wire != Wire::kTorch) return;
  std::optional<std::string> worker_file;
  // A path of another host names another file here.
  if (end.verdict && end.verdict->root_cause && end.verdict->root_cause->host == HostName()) {
    worker_file = HostFs().Read(end.verdict->root_cause->error_file);
  }
  const int64_t unix_ms = UnixMillis();
  auto text = ErrorFileText(end, worker_file, unix_ms);
  if (!text) return;
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  if (file << *text << std::flush) return;
  log::Warning(fmt::format("{}; the exit code still holds",
                           Message(ErrnoStatus(errno, fmt::format("TORCHELASTIC_ERROR_FILE={}: cannot write", path)))));
}

}  // namespace muster::agent
