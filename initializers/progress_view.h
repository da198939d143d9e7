// How a run looks: a bar on a terminal, a line every few seconds elsewhere, JSON lines with --json. And its last line.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "initializers/initialize.h"

namespace muster::initializers {

// "1.5 GiB"; powers of 1,024.
std::string BytesText(uint64_t bytes);

class ProgressView {
 public:
  explicit ProgressView(bool json);

  Duration interval() const;
  void Show(const TransferCounts& counts, TimePoint now);
  void Say(const std::string& text);
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
