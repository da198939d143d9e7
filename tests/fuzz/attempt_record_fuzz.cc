// SPDX-License-Identifier: Apache-2.0
// libFuzzer: attempt.json or run.json from a disk, and the page made from it.
#include <cstdlib>

#include "agent/page/report_page.h"
#include "agent/report/attempt_history.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::agent;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto job = ParseJobRecord(text); job.ok()) {
    const std::vector<AttemptFile> files(1);
    std::vector<RunSummary> runs = Summarize(files);
    AddJob(*job, &runs);
    if (ReportPage("folder", "folder", runs, {}).find("<script") != std::string::npos) abort();
    ToJson(runs, {});
  }
  auto record = ParseAttemptRecord(text);
  if (!record.ok()) return 0;
  auto again = ParseAttemptRecord(ToJson(*record));
  if (!again.ok()) abort();  // a record that was read can be written and read again
  std::vector<AttemptFile> files = {{"first", *std::move(record)}, {"second", *std::move(again)}};
  std::vector<RunSummary> runs = Summarize(files);
  if (ReportPage("folder", "folder", runs, {}).find("<script") != std::string::npos) abort();
  ToJson(runs, {});
  return 0;
}
