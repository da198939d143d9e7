// SPDX-License-Identifier: Apache-2.0
#include "local/state/background.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/replace_file.h"
#include "base/text.h"

namespace muster::local {
namespace {

constexpr size_t kMostWord = 64 << 10;  // bytes
constexpr std::string_view kRuns = "+";
constexpr std::string_view kFailed = "-";

}  // namespace

StatusOr<Background> Background::Fork(const std::string& output) {
  const Descriptor file(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644));
  if (!file.ok()) return ErrnoStatus(errno, fmt::format("cannot write {}", output));
  const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing.ok()) return ErrnoStatus(errno, "/dev/null");
  MUSTER_ASSIGN_OR_RETURN(PipeEnds word, MakePipe());
  fflush(nullptr);  // else both processes would write the buffered output
  const pid_t pid = fork();
  if (pid < 0) return ErrnoStatus(errno, "fork");
  if (pid > 0) return Background(pid, std::move(word.reading), output);
  setsid();
  dup2(nothing.get(), STDIN_FILENO);
  dup2(file.get(), STDOUT_FILENO);
  dup2(file.get(), STDERR_FILENO);
  return Background(0, std::move(word.writing), output);
}

void Background::ReportStart(const Status& started) {
  const std::string word = started.ok() ? std::string(kRuns) : fmt::format("{}{}", kFailed, Message(started));
  // If the first process has ended, the write fails, which does not matter.
  static_cast<void>(WriteAll(word_.get(), std::string_view(word).substr(0, kMostWord), "the first process"));
  word_.Close();
}

Status Background::Await() {
  std::string word(kMostWord, '\0');
  size_t size = 0;
  while (size < word.size()) {
    const ssize_t count = read(word_.get(), word.data() + size, word.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size += static_cast<size_t>(count);
  }
  word.resize(size);
  if (word == kRuns) return absl::OkStatus();
  if (word.starts_with(kFailed)) return absl::UnavailableError(word.substr(kFailed.size()));
  return absl::UnavailableError(fmt::format("process {} ended at its start; its output is in {}", pid_, output_));
}

}  // namespace muster::local
