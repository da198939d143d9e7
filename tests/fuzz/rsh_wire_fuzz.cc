// SPDX-License-Identifier: Apache-2.0
// libFuzzer: messages of the remote shell, cut into five slices. The first four bytes of the input are the lengths of
// the first four. Cuts must not change the result. A decoded message must survive encoding and decoding.
#include <string>
#include <vector>

#include "rsh/protocol.h"
#include "tests/fuzz/input.h"

namespace muster::rsh {
namespace {

std::string Text(const grpc::ByteBuffer& buffer) {
  Bytes slices;
  Must(buffer.Dump(&slices).ok());
  return net::Joined(slices);
}

grpc::ByteBuffer Cut(const std::string& text, const uint8_t* lengths, size_t count) {
  Bytes slices;
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    slices.emplace_back(text.substr(at, lengths[i]));
    at += slices.back().size();
  }
  slices.emplace_back(text.substr(at));
  return {slices.data(), slices.size()};
}

template <typename Decode>
void Check(const grpc::ByteBuffer& whole, const grpc::ByteBuffer& cut, Decode decode) {
  auto message = decode(whole);
  auto from_cut = decode(cut);
  Must(message.ok() == from_cut.ok());
  if (!message.ok()) return;
  const std::string again = Text(Encode(*message));
  Must(again == Text(Encode(*from_cut)));
  auto second = decode(Encode(*message));
  Must(second.ok() && Text(Encode(*second)) == again);
}

}  // namespace
}  // namespace muster::rsh

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::rsh;
  constexpr size_t kCuts = 4;
  if (size < kCuts) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + kCuts, size - kCuts);
  const grpc::ByteBuffer whole = Cut(text, data, 0), cut = Cut(text, data, kCuts);
  Check(whole, cut, DecodeFromCaller);
  Check(whole, cut, DecodeFromPod);
  Check(whole, cut, DecodeFromLauncher);
  Check(whole, cut, DecodeFromWorker);
  return 0;
}
