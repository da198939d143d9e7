// SPDX-License-Identifier: Apache-2.0
#include "local/network/isolation.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "base/descriptors.h"
#include "base/exec_pointers.h"
#include "base/quoted.h"
#include "base/text.h"

namespace muster::local {
namespace {

constexpr size_t kMostError = 500;  // bytes

// Why bubblewrap does not run here with the flags `words`; empty: it runs.
std::string WhyNoSandbox(const std::string& bwrap, std::vector<std::string> words) {
  auto pipe = MakePipe();
  if (!pipe.ok()) return std::string(Message(pipe.status()));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe->writing.get(), STDERR_FILENO);
  words.insert(words.begin(), bwrap);
  words.insert(words.end(), {"--", "/bin/true"});
  pid_t child = -1;
  const int error = posix_spawn(&child, bwrap.c_str(), &actions, nullptr, ExecPointers(words).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  pipe->writing.Close();
  if (error != 0) return std::string(Message(ErrnoStatus(error, bwrap)));
  // bubblewrap writes its message in several parts.
  std::string said(kMostError, '\0');
  size_t size = 0;
  while (size < said.size()) {
    const ssize_t got = read(pipe->reading.get(), said.data() + size, said.size() - size);
    if (got <= 0 && !(got < 0 && errno == EINTR)) break;
    size += static_cast<size_t>(std::max<ssize_t>(got, 0));
  }
  said.resize(size);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  return fmt::format("bubblewrap does not run here: {}", said.substr(0, std::min(said.find('\n'), said.size())));
}

}  // namespace

StatusOr<NetworkMode> ParseNetworkMode(const std::string& text) {
  if (text == "auto") return NetworkMode::kAuto;
  if (text == "private") return NetworkMode::kPrivate;
  if (text == "shared") return NetworkMode::kShared;
  return absl::InvalidArgumentError(fmt::format("--network {}: want auto, private or shared", Quoted(text)));
}

StatusOr<Isolation> Isolate(NetworkMode mode, const std::string& bwrap) {
  Isolation isolation;
  const std::vector<std::string> words = {"--unshare-ipc", "--unshare-uts", "--bind", "/", "/"};
  std::vector<std::string> with_pids = words;
  with_pids.insert(with_pids.end(), {"--unshare-pid", "--proc", "/proc"});
  std::string why_no_sandbox = "bubblewrap is not installed (Debian's package bubblewrap)";
  if (!bwrap.empty()) {
    isolation.own_pids = WhyNoSandbox(bwrap, with_pids).empty();
    why_no_sandbox = isolation.own_pids ? "" : WhyNoSandbox(bwrap, words);
  }
  isolation.why_shared = "--network shared";
  if (why_no_sandbox.empty()) isolation.bwrap = bwrap;
  if (mode != NetworkMode::kShared) {
    auto network = isolation.bwrap.empty() ? absl::FailedPreconditionError(why_no_sandbox) : PodNetwork::Make();
    if (network.ok()) {
      isolation.network = *std::move(network);
      isolation.why_shared.clear();
    } else {
      isolation.why_shared = Message(network.status());
      if (mode == NetworkMode::kPrivate) {
        return absl::FailedPreconditionError(fmt::format("--network private: {}", isolation.why_shared));
      }
    }
  }
  if (isolation.bwrap.empty()) {
    isolation.said =
        fmt::format("hosts share this machine's files, /dev/shm, host name and network: {}", why_no_sandbox);
  } else if (isolation.network) {
    isolation.said = "each host has its own volumes, /dev/shm, host name and network";
  } else {
    isolation.said =
        fmt::format("each host has its own volumes, /dev/shm and host name; all share this machine's network: {}",
                    isolation.why_shared);
  }
  return isolation;
}

}  // namespace muster::local
