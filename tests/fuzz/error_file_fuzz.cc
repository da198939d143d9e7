// SPDX-License-Identifier: Apache-2.0
// libFuzzer: torchelastic's error file, written by the user's program.
#include "launcher/exit_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)muster::launcher::ParseErrorFile(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
