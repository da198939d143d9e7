// SPDX-License-Identifier: Apache-2.0
// A blocking TCPStore client of the newest generation, for tests of the server.
//
// Keys are sent as given. A PyTorch client puts "/" before its own keys, so its "a" is "/a" here.
// Timeouts: Wait and Barrier have their own, all other calls the client's. After an error the connection is unusable
// and all later calls fail, except after the timeout of a Wait or Barrier. Not thread-safe.
// Errors: DeadlineExceeded, Unavailable (refused, closed by the server), InvalidArgument (no numeric address).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace muster::store {

class StoreClient {
 public:
  // `host`: a numeric address. One attempt; the caller retries.
  static StatusOr<StoreClient> Connect(std::string_view host, uint16_t port, Duration timeout);
  StoreClient(StoreClient&& other) noexcept;
  StoreClient& operator=(StoreClient&& other) noexcept;
  ~StoreClient();

  Status Set(std::string_view key, std::string_view value);
  StatusOr<std::string> CompareSet(std::string_view key, std::string_view expected, std::string_view desired);
  // Does not wait; "" if the key is missing. PyTorch's get is Wait, then this.
  StatusOr<std::string> Get(std::string_view key);
  StatusOr<int64_t> Add(std::string_view key, int64_t delta);
  StatusOr<bool> Check(const std::vector<std::string>& keys);
  // DeadlineExceeded: the wait was cancelled, the connection is still usable.
  Status Wait(const std::vector<std::string>& keys, Duration timeout);
  StatusOr<int64_t> NumKeys();
  StatusOr<bool> Delete(std::string_view key);
  Status Append(std::string_view key, std::string_view value);
  StatusOr<std::vector<std::string>> MultiGet(const std::vector<std::string>& keys);
  Status MultiSet(const std::vector<std::pair<std::string, std::string>>& pairs);
  Status Ping();
  Status QueuePush(std::string_view key, std::string_view value);
  StatusOr<std::optional<std::string>> QueuePop(std::string_view key);  // nullopt: the queue is empty
  StatusOr<int64_t> QueueLength(std::string_view key);
  StatusOr<std::vector<std::string>> ListKeys();
  // DeadlineExceeded as for Wait.
  Status Barrier(std::string_view key, int64_t world, Duration timeout);

 private:
  StoreClient(int fd, Duration timeout) : fd_(fd), timeout_(timeout) {}

  Status Send(TimePoint deadline);
  Status ReceiveExactly(void* into, size_t bytes, TimePoint deadline);
  Status Exchange(void* answer, size_t bytes);
  StatusOr<std::string> ReceiveString(TimePoint deadline);
  StatusOr<std::vector<std::string>> ReceiveStrings(uint64_t count, TimePoint deadline);
  Status AwaitStop(Duration timeout);
  Status Broken(std::string_view why, absl::StatusCode code = absl::StatusCode::kUnavailable);
  TimePoint Deadline() const { return MonotonicClock::now() + timeout_; }

  int fd_ = -1;
  Duration timeout_;
  std::string out_;
};

}  // namespace muster::store
