// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the answer of a metadata service, and the URL of the request.
#include <cstdlib>

#include "agent/watch/preempt_rules.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::agent;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  NoticeVerdict verdict = JudgeNotice(200, text);
  for (char c : verdict.what) {
    if (static_cast<unsigned char>(c) < ' ') abort();  // the text goes into one line of the log
  }
  if (verdict.kind == NoticeVerdict::Kind::kNoticeOf && verdict.machines.empty()) abort();
  if (auto url = ParseHttpUrl(text); url.ok()) {
    for (const std::string& target : {FirstTarget(url->target), NextTarget(url->target, text)}) {
      if (target.empty() || target[0] != '/' || target.find_first_of(" \r\n") != std::string::npos) abort();
    }
    if (url->host.empty() || url->port < 1) abort();
  }
  return 0;
}
