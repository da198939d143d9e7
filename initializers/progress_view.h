// SPDX-License-Identifier: Apache-2.0
// Shows a run's progress (a bar on a terminal, else a line every few seconds, JSON lines with --json) and its end.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "initializers/initialize.h"
#include "initializers/target/verify_folder.h"

namespace muster::initializers {

// "1.5 GiB"; powers of 1,024.
std::string BytesText(uint64_t bytes);

// The termination message (base/termination_message.h): a line of JSON of at most 4,096 bytes with version, exit_code,
// class, reason, and the progress: source, target, files, bytes, received, requests, retries, seconds,
// bytes_per_second, unverified_files, unchanged. docs/initializers.md has an example. `run`: nullopt: none has begun.
std::string TerminationLine(const Status& status, const std::optional<InitializeResult>& run, int exit_code);
// Prints the problems that a check of a folder found, and the last line.
void ShowCheck(const FolderCheck& check, const std::string& folder, bool json);

class ProgressView {
 public:
  explicit ProgressView(bool json);

  Duration interval() const;
  void Show(const MoveCounts& counts, TimePoint now);
  void Say(const std::string& text);
  void Plan(const Initialize::Planned& file);
  void Done(const InitializeResult& result, bool dry_run);
  void Failed(const Status& status, int exit_code);

 private:
  void ClearBar();

  const bool json_;
  const bool terminal_;
  bool bar_ = false;
  TimePoint last_{};
  uint64_t last_bytes_ = 0;
  double rate_ = 0;  // bytes/s, smoothed
};

}  // namespace muster::initializers
