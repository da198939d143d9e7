// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/handover.h"

#include <unistd.h>

#include <cerrno>

#include "agent/flags/early_signals.h"
#include "agent/flags/service_links.h"
#include "base/exec_pointers.h"
#include "base/log.h"
#include "base/text.h"

namespace muster::agent {
namespace {

// Devices of PyTorch extensions that rename the "privateuse1" backend: only Python can count them.
constexpr std::string_view kForeignDevices[] = {"npu", "hpu", "mlu", "musa", "gcu", "dipu", "maia", "privateuseone"};

}  // namespace

StatusOr<std::optional<std::string>> HandOverReason(const FlagReader& flags, bool standalone,
                                                    const std::map<std::string, std::string>& rdzv_conf) {
  auto because = [](const FlagValue& value, std::string_view what) {
    return fmt::format("{}={} {}, which only the real torchrun has", value.origin, value.text, what);
  };
  if (FlagValue shell = flags.Get("print-completion"); shell.given())
    return because(shell, "prints a completion script");
  if (FlagValue specs = flags.Get("logs-specs"); specs.given() && specs.text != "default") {
    return because(specs, "names a Python entry point for logs");
  }
  FlagValue handler = flags.Get("event-log-handler");
  if (handler.text.empty()) return Bad(handler, "want null or console, or an event handler of the real torchrun");
  if (handler.text != "null" && handler.text != "console" && handler.text != "dynamic_rendezvous") {
    return because(handler, "names a Python event handler");
  }
  FlagValue nproc = flags.Get("nproc-per-node");
  for (std::string_view device : kForeignDevices) {
    if (nproc.text == device) return because(nproc, "asks a PyTorch extension how many devices there are");
  }
  if (standalone) return std::nullopt;
  FlagValue backend = flags.Get("rdzv-backend");
  if (backend.text.empty()) return Bad(backend, "want static or c10d, or a rendezvous handler of the real torchrun");
  if (backend.text.starts_with("etcd")) return because(backend, "meets through etcd");
  if (backend.text != "static" && backend.text != "c10d")
    return because(backend, "is an out-of-tree rendezvous handler");
  if (backend.text == "c10d") {
    if (auto store = rdzv_conf.find("store_type"); store != rdzv_conf.end() && Lower(store->second) == "file") {
      return because(flags.Get("rdzv-conf"), "meets through a file");
    }
  }
  return std::nullopt;
}

StatusOr<std::vector<std::string>> HandOverCommand(const std::vector<std::string>& arguments, std::string_view reason,
                                                   bool legacy_launch, const CommandSurroundings& surroundings) {
  if (surroundings.environment.Get(kHandedOver)) {
    return absl::FailedPreconditionError(fmt::format(
        "{}, and the torchrun on PATH leads back to muster; put the folder of PyTorch's own torchrun on PATH", reason));
  }
  std::string torchrun = FindRealTorchrun(surroundings);
  if (torchrun.empty()) {
    return absl::NotFoundError(
        fmt::format("{}, and there is no other torchrun on PATH; install PyTorch or leave the flag out", reason));
  }
  std::vector<std::string> command = {torchrun};
  if (legacy_launch) {
    MUSTER_ASSIGN_OR_RETURN(std::string python, FindPython(surroundings));
    command = {python, "-m", "torch.distributed.launch"};
  }
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Status HandOver(const TorchrunsPart& part, const std::string& reason, bool legacy_launch) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> command,
                          HandOverCommand(part.arguments, reason, legacy_launch, RealSurroundings()));
  std::string left_out =
      part.left_out.empty() ? "" : fmt::format(", without muster's own {}", Join(part.left_out, ", "));
  log::Warning(fmt::format("{}; {} goes on in place of muster{}", reason, command.front(), left_out));
  Environment environment = WithoutLinks(Environment::OfProcess());
  environment.Set(kHandedOver, "1");
  const std::vector<char*> arguments = ExecPointers(command), variables = ExecPointers(environment.entries());
  ReleaseSignals();
  execve(arguments.front(), arguments.data(), variables.data());
  Status failed = ErrnoStatus(errno, fmt::format("cannot execute {}", command.front()));
  return absl::IsNotFound(failed) ? failed : absl::PermissionDeniedError(failed.message());
}

}  // namespace muster::agent
