// One initializer at a time works on a target, however many pods have it mounted: the others wait, then find it done.
//
// The lease is a file below TARGET/.muster, "lease.N"; the highest N holds. Its holder writes a beat into it every
// `beat`; a waiter that sees the same text for `silence` by its own clock (clocks of machines are not compared) takes
// over by creating lease.N+1, which only one can (O_EXCL, on NFS as well). A holder that finds a higher number than its
// own has lost and stops. So two holders overlap for a beat at most, after one was frozen for longer than `silence`;
// they then stage the same bytes of the same versions in the same places.
//
// On the same kernel a dead holder is known at once: it had the file locked (flock) and now nobody has. The lock is
// believed only there: over a network some file systems grant it to everyone, or to nobody.
//
// A folder that cannot be read tells nothing, neither that nobody holds it nor that it was taken: it is looked at
// again.
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
  Duration silence = std::chrono::seconds(30);  // several beats: a slow disk holds one back
  Duration look = std::chrono::milliseconds(500);
};

// What one look at the folder shows: the lease file with the highest number.
struct LeaseSight {
  std::optional<uint64_t> number;  // none: nobody holds it
  std::string text;                // what is in it
  bool dead = false;               // it was locked on this kernel, and is not any more
};

// What a waiter remembers between looks.
struct LeaseWatch {
  std::optional<uint64_t> number;
  std::string text;
  TimePoint since;  // that it looks like this
};

struct LeaseDecision {
  std::optional<uint64_t> take;  // try to create this number
  std::string reason;            // for people, when it is taken from somebody: "pod-a (process 7) has been silent ..."
};

LeaseDecision Decide(LeaseWatch* watch, const LeaseSight& sight, const LeaseRules& rules, TimePoint now);

// "host=pod-a pid=7 boot=... id=... locked=1 beat=3\n" -> who that is, for people; what is no such text: "somebody".
std::string LeaseHolderText(std::string_view text);

class Lease {
 public:
  struct Events {
    std::function<void()> held;                   // posted, once: it is ours
    std::function<void(Status)> lost;             // taken by another, or the folder cannot be read; the last call
    std::function<void(Status)> unwritable;       // its file cannot be made: read-only, say; the last call
    std::function<void(const std::string&)> say;  // whom it waits for, when that changes
  };
  // `folder`: TARGET/.muster, open; `shown`: its path, for messages.
  Lease(boost::asio::io_context& loop, Descriptor folder, std::string shown, LeaseRules rules, Events events);
  ~Lease();  // gives it back
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  void Begin();
  // Still ours, asked of the folder now: to be asked before something is done that cannot be undone. An error: the
  // folder cannot be read.
  StatusOr<bool> StillHeld();
  // For who keeps the loop for long, to be called between its steps: asks and beats, where a beat is due. Unavailable:
  // it was taken over.
  Status StayHeld();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::initializers
