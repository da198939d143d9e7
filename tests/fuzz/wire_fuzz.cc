// SPDX-License-Identifier: Apache-2.0
// libFuzzer: messages from nodes and coordinators. A decoded message must survive encoding and decoding.
#include <cstdlib>

#include "rendezvous/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace wire = muster::rendezvous::wire;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto message = wire::DecodeFromNode(bytes); message.ok()) {
    if (!wire::DecodeFromNode(wire::Encode(*message)).ok()) abort();
  }
  if (auto message = wire::DecodeFromCoordinator(bytes); message.ok()) {
    if (!wire::DecodeFromCoordinator(wire::Encode(*message)).ok()) abort();
  }
  return 0;
}
