// SPDX-License-Identifier: Apache-2.0
// Lets one initializer at a time work on a target, however many pods mount it. The others wait, then find it done.
//
// The lease is a file below TARGET/.muster, "lease.N"; the highest N is valid. Its holder writes a beat into it every
// `beat`. A waiter that sees the same text for `silence` by its own clock (clocks of machines are not compared) takes
// over by creating lease.N+1, which only one can (O_EXCL, on NFS as well). A holder that finds a higher number has lost
// the lease and stops. So two holders overlap for at most a beat, after one was frozen for longer than `silence`; they
// then stage the same bytes of the same versions in the same places.
//
// On the same kernel a holder's death is known at once: the kernel releases its lock on the file (flock). Over a
// network the lock does not count: some file systems grant it to everyone, or to nobody.
//
// If the folder cannot be read, the lease counts neither as free nor as taken over; the folder is read again later.
//
// The decision is pure; Lease does the I/O. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/status.h"

namespace muster::initializers {

struct LeaseRules {
  Duration beat = std::chrono::seconds(5);
  Duration silence = std::chrono::seconds(30);  // several beats, because a slow disk may delay one
  Duration look = std::chrono::milliseconds(500);
};

// The result of reading the folder: the lease file with the highest number.
struct LeaseSight {
  std::optional<uint64_t> number;  // nullopt: nobody holds the lease
  std::string text;                // content of the file
  bool dead = false;               // it was locked on this kernel, and the lock is gone
};

// What a waiter remembers between looks.
struct LeaseWatch {
  std::optional<uint64_t> number;
  std::string text;
  TimePoint since;  // when this number and text were first seen
};

struct LeaseDecision {
  std::optional<uint64_t> take;  // try to create this number
  std::string reason;            // for messages, if a holder is replaced: "pod-a (process 7) has been silent ..."
};

LeaseDecision Decide(LeaseWatch* watch, const LeaseSight& sight, const LeaseRules& rules, TimePoint now);

// "host=pod-a pid=7 boot=... id=... locked=1 beat=3\n" -> the holder, for messages; any other text -> "somebody".
std::string LeaseHolderText(std::string_view text);

class Lease {
 public:
  struct Events {
    std::function<void()> held;              // posted once, when the lease is ours
    std::function<void(Status)> lost;        // taken over, or folder or file fails; the last call
    std::function<void(Status)> unwritable;  // its file cannot be created, e.g. the folder is read-only; the last call
    std::function<void(const std::string&)> say;  // the holder that it waits for, when that changes
  };
  // `folder`: TARGET/.muster, open; `shown`: its path, for messages.
  Lease(boost::asio::io_context& loop, Descriptor folder, std::string shown, LeaseRules rules, Events events);
  ~Lease();  // releases the lease
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  void Begin();
  // Reads the folder; true: still ours. Call it before what cannot be undone. Error: the folder cannot be read.
  StatusOr<bool> StillHeld();
  // For callers that block the loop for long: call it between steps. Checks the lease and writes a beat if one is due.
  // Unavailable: another process took over.
  Status StayHeld();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::initializers
