// SPDX-License-Identifier: Apache-2.0
// Splits the body of a watch in protobuf, which comes in any pieces, into frames of one event each: a length of 4 bytes
// (big endian), then so many bytes. Pure; untrusted input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace muster::controller {

class WatchFrames {
 public:
  // `whole`: false for a frame that is longer than the limit: `bytes` is its beginning. A frame that no API server
  // sends (kImpossible) comes at once, as empty and not whole.
  using Frame = std::function<bool(std::string_view bytes, bool whole)>;

  static constexpr size_t kImpossible = size_t{256} << 20;  // bytes: an object of etcd has a few MiB at most

  // `longest`: the most bytes of a frame that are kept.
  explicit WatchFrames(size_t longest) : longest_(longest) {}

  // Calls `frame` for each complete frame but empty ones, in order, until it returns false. Keeps a frame's beginning
  // until its rest comes, and takes no memory for bytes that have not come.
  void Take(std::string_view bytes, const Frame& frame);

 private:
  static constexpr size_t kHead = 4;  // bytes

  const size_t longest_;
  std::string part_;       // of the head, or of the frame
  bool in_frame_ = false;  // the head is complete
  size_t size_ = 0;        // of the frame
  size_t skipped_ = 0;     // bytes of the frame that were dropped
};

}  // namespace muster::controller
