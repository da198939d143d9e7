// SPDX-License-Identifier: Apache-2.0
// A loop with the objects that both ends of the remote shell need, and a way to wait for a condition.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launcher/console.h"
#include "launcher/reaper.h"
#include "rsh/protocol.h"

namespace muster::rsh {

class RshHarness : public testing::Test {
 protected:
  RshHarness() {
    std::string name = testing::TempDir() + "muster-rsh-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~RshHarness() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // Runs the loop until `done`; false after a minute.
  bool Until(const std::function<bool()>& done) {
    const TimePoint deadline = MonotonicClock::now() + std::chrono::minutes(1);
    while (!done()) {
      if (MonotonicClock::now() > deadline) return false;
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(20));
    }
    return true;
  }
  static bool Exists(pid_t pid) { return kill(pid, 0) == 0; }
  static std::vector<std::string> Environment() { return {"PATH=/usr/bin:/bin"}; }
  // Pseudo-random bytes, the same each time.
  static std::string Noise(size_t size) {
    std::string noise(size, '\0');
    uint64_t state = 88172645463325252;
    for (char& byte : noise) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      byte = static_cast<char>(state);
    }
    return noise;
  }

  std::string folder_;
  boost::asio::io_context loop_{1};
  launcher::Reaper reaper_{loop_};
  launcher::Console console_{loop_};  // also makes the process ignore SIGPIPE
};

}  // namespace muster::rsh
