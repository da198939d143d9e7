// SPDX-License-Identifier: Apache-2.0
// libFuzzer: run.json from a disk or an agent's answer of /status, and the output of `muster ps` for it.
#include "local/state/job_table.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::local;
  auto record = ParseRunRecord({reinterpret_cast<const char*>(data), size});
  if (record.ok()) {
    const auto again = ParseRunRecord(ToJson(*record));
    Must(again.ok());  // a record that was read can be written and read again
    for (const PodRecord& pod : record->pods) Must(pod.name.find('/') == std::string::npos);
  } else {
    Must(!muster::Message(record.status()).empty());
  }
  const std::vector<FoundJob> jobs = {{.name = "job", .runs = size % 2 == 0, .record = std::move(record)}};
  ProgressByJob progress;
  if (const auto told = ParseJobProgress({reinterpret_cast<const char*>(data), size})) progress["job"] = *told;
  Must(!JobTable(jobs, progress, muster::WallTime()).empty());
  Must(JobsAsJson(jobs, progress).size() == 1);
  return 0;
}
