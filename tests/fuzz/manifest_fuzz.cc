// SPDX-License-Identifier: Apache-2.0
// libFuzzer: completion manifests.
#include <cstdlib>

#include "initializers/target/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::initializers;
  auto manifest = ReadManifest({reinterpret_cast<const char*>(data), size});
  if (!manifest.ok()) {
    if (manifest.status().message().size() > 4096) abort();
    return 0;
  }
  auto again = ReadManifest(WriteManifest(*manifest));
  if (!again.ok() || *again != *manifest) abort();
  return 0;
}
