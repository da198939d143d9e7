// SPDX-License-Identifier: Apache-2.0
#include "agent/start_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/system/system_error.hpp>
#include <cerrno>
#include <system_error>

#include "agent/workers/torch_command.h"
#include "agent/workers/torch_env.h"
#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/kernel_calls.h"
#include "base/text.h"
#include "launcher/process.h"

namespace muster::agent {
namespace {

Status CheckScript(const RunOptions::Command& wanted, const Environment& environment) {
  if (wanted.module) return absl::OkStatus();
  const bool command = wanted.no_python && !wanted.run_path;
  if (command && wanted.script.find('/') == std::string::npos) {
    return launcher::FindExecutable(wanted.script, environment.entries(), "").status();
  }
  struct stat facts {};
  if (stat(wanted.script.c_str(), &facts) != 0) {
    int error = errno;
    std::string why = fmt::format("{}: {}", wanted.script, Message(ErrnoStatus(error, "cannot run it")));
    return error == EACCES ? absl::PermissionDeniedError(why) : absl::NotFoundError(why);
  }
  if (command && S_ISDIR(facts.st_mode)) {
    return absl::PermissionDeniedError(fmt::format("{} is a directory, not a command", wanted.script));
  }
  if (access(wanted.script.c_str(), command ? X_OK : R_OK) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("{} is not {}; check its mode", wanted.script, command ? "executable" : "readable"));
  }
  return absl::OkStatus();
}

}  // namespace

Status CheckStart(const RunOptions& options) {
  const Environment environment = Environment::OfProcess();
  MUSTER_RETURN_IF_ERROR(CheckScript(options.command, environment));
  MUSTER_RETURN_IF_ERROR(CheckDevices(environment, options.workers));
  const int commands =
      options.command.numa_binding.empty() ? 1 : options.workers.nproc;  // else the commands differ in arguments only
  for (int local_rank = 0; local_rank < commands; ++local_rank) {
    MUSTER_RETURN_IF_ERROR(WorkerCommand(options, local_rank).status());
  }
  return absl::OkStatus();
}

int StartExitCode(const Status& error) {
  if (absl::IsNotFound(error)) return kExitNotFound;
  if (absl::IsPermissionDenied(error)) return kExitNotExecutable;
  if (absl::IsFailedPrecondition(error) || absl::IsInvalidArgument(error)) return kExitBadConfiguration;
  return kExitNodeUnhealthy;
}

int RefusalExitCode(const Status& error) {
  return absl::IsResourceExhausted(error) ? kExitNodeUnhealthy : kExitBadConfiguration;
}

StatusOr<int> RunOrSay(const std::function<int()>& begin) {
  try {
    return begin();
  } catch (const boost::system::system_error& thrown) {  // what() begins with Asio's name of the call
    const std::string_view what = thrown.what();
    return CallStatus(thrown.code().value(), what.substr(0, what.find(':')), "cannot begin");
  } catch (const std::system_error& thrown) {
    const int error = thrown.code().value();
    if (error == EAGAIN || error == EPERM) return ThreadStatus(error, "cannot begin: starting a thread");
    return absl::InternalError(fmt::format("cannot go on: {}", thrown.what()));
  }
}

}  // namespace muster::agent
