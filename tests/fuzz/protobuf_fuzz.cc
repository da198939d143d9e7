// SPDX-License-Identifier: Apache-2.0
// libFuzzer: Kubernetes' protobuf: an object, and the body of a watch. The first byte gives the length of the pieces in
// which the body arrives. The pieces must not change the frames. What is read can be written as JSON and read again.
// The beginning of an event can be read at any length.
#include <utility>
#include <vector>

#include "controller/kube/client/protobuf_object.h"
#include "controller/kube/client/watch_frames.h"
#include "controller/reconcile/observed.h"
#include "tests/fuzz/input.h"

namespace muster::controller {
namespace {

constexpr size_t kLongest = 1000;
constexpr size_t kMostMemory = size_t{1} << 20;

std::vector<std::pair<std::string, bool>> FramesOf(std::string_view body, size_t piece) {
  WatchFrames frames(kLongest);
  std::vector<std::pair<std::string, bool>> got;
  for (; !body.empty(); body.remove_prefix(std::min(piece, body.size()))) {
    frames.Take(body.substr(0, piece), [&](std::string_view frame, bool whole) {
      Must(frame.size() <= kLongest && (!frame.empty() || !whole));
      got.emplace_back(frame, whole);
      return true;
    });
  }
  return got;
}

void ReadAsChild(const ObjectView& object) {
  (void)ReadPod(object);
  (void)ReadJob(object);
}

void ReadObject(std::string_view text) {
  const auto object = ReadProtobufObject(text);
  MustBeTold(object.status());
  if (object.ok()) ReadAsChild(*object);
  const auto json = ProtobufAsJson(text, kMostMemory);
  MustBeTold(json.status());
  if (json.ok()) Must(Json::parse(WriteJson(*json)) == *json);
}

}  // namespace
}  // namespace muster::controller

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::controller;
  const auto [choice, text] = Choose(data, size);
  ReadObject(text);
  const auto frames = FramesOf(text, SIZE_MAX);
  Must(FramesOf(text, size_t{1} + choice) == frames);
  for (const auto& [frame, whole] : frames) {
    const auto event = ReadProtobufEvent(frame, whole);
    MustBeTold(event.status());
    if (!event.ok()) continue;
    ReadAsChild(event->object);
    (void)ReadProtobufEvent(std::string_view(frame).substr(0, choice), false);
  }
  return 0;
}
