// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/lease.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <random>
#include <vector>

#include "base/folder_names.h"
#include "base/host_fs.h"
#include "base/host_names.h"
#include "base/text.h"
#include "initializers/facts/failure.h"
#include "initializers/target/metadata_files.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kPrefix = "lease.";
constexpr size_t kLongestText = 1024;  // bytes of a lease file that are read

// The value of "key=value" in `text`; empty: there is none.
std::string_view Field(std::string_view text, std::string_view key) {
  for (std::string_view part : Split(Strip(text), ' ')) {
    if (part.starts_with(key) && part.size() > key.size() && part[key.size()] == '=') {
      return part.substr(key.size() + 1);
    }
  }
  return {};
}

std::string FileName(uint64_t number) { return fmt::format("{}{}", kPrefix, number); }

StatusOr<std::vector<uint64_t>> Numbers(int folder, const std::string& shown) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder, ".", shown));
  std::vector<uint64_t> numbers;
  for (std::string_view name : names) {
    if (!name.starts_with(kPrefix)) continue;
    if (auto number = ParseInt(name.substr(kPrefix.size())); number && *number > 0) {
      numbers.push_back(static_cast<uint64_t>(*number));
    }
  }
  return numbers;
}

StatusOr<std::optional<uint64_t>> Highest(int folder, const std::string& shown) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, Numbers(folder, shown));
  std::optional<uint64_t> highest;
  for (uint64_t number : numbers) highest = std::max(highest.value_or(0), number);
  return highest;
}

}  // namespace

std::string LeaseHolderText(std::string_view text) {
  const std::string_view host = Field(text, "host");
  if (host.empty()) return "somebody";
  return fmt::format("{} (process {})", host, Field(text, "pid"));
}

LeaseDecision Decide(LeaseWatch* watch, const LeaseSight& sight, const LeaseRules& rules, TimePoint now) {
  if (!sight.number) return {1, ""};
  if (watch->number != sight.number || watch->text != sight.text) {
    *watch = {sight.number, sight.text, now};
  }
  if (sight.dead) {
    return {*sight.number + 1, fmt::format("{} has ended without releasing the folder", LeaseHolderText(sight.text))};
  }
  if (now - watch->since >= rules.silence) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - watch->since).count();
    return {*sight.number + 1, fmt::format("{} has been silent for {} s", LeaseHolderText(sight.text), seconds)};
  }
  return {};
}

class Lease::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, Descriptor folder, std::string shown, LeaseRules rules, Events events)
      : timer_(loop),
        loop_(loop),
        folder_(std::move(folder)),
        shown_(std::move(shown)),
        rules_(rules),
        events_(std::move(events)),
        boot_(HostFs().ReadLine("/proc/sys/kernel/random/boot_id").value_or("")),
        who_(fmt::format("host={} pid={} boot={} id={:016x}", ThisMachine().host_name, getpid(), boot_,
                         std::mt19937_64(std::random_device{}())())) {}

  void Look();
  void End();
  StatusOr<bool> StillHeld() const;
  Status StayHeld();

 private:
  StatusOr<LeaseSight> See() const;
  Status Take(uint64_t number);
  Status WriteBeat();
  void Beat();
  void NotifyLast(const std::function<void(Status)>& last, Status status);
  void After(Duration pause, void (Impl::*what)());

  asio::steady_timer timer_;
  asio::io_context& loop_;
  const Descriptor folder_;
  const std::string shown_;
  const LeaseRules rules_;
  const Events events_;
  const std::string boot_, who_;
  LeaseWatch watch_;
  std::optional<TimePoint> unseen_since_;  // since when every look has failed
  std::string waits_for_;
  std::optional<uint64_t> number_;  // our number
  Descriptor file_;
  bool locked_ = false;
  uint64_t beats_ = 0;
  TimePoint beaten_{};  // time of the last beat
  bool ended_ = false;
};

StatusOr<LeaseSight> Lease::Impl::See() const {
  LeaseSight sight;
  MUSTER_ASSIGN_OR_RETURN(sight.number, Highest(folder_.get(), shown_));
  if (!sight.number) return sight;
  const auto file = OpenMetadataFile(folder_.get(), FileName(*sight.number), O_RDONLY);
  // Removed meanwhile, which the next look shows; or no regular file, which counts as a silent holder.
  if (!file.ok()) return sight;
  char buffer[kLongestText];
  const ssize_t got = pread(file->get(), buffer, sizeof buffer, 0);
  if (got > 0) sight.text.assign(buffer, static_cast<size_t>(got));
  const bool here = !boot_.empty() && Field(sight.text, "boot") == boot_ && Field(sight.text, "locked") == "1";
  // Closing the file releases the lock. A file without a name was released by its holder: that holder is not dead.
  struct stat facts {};
  sight.dead =
      here && flock(file->get(), LOCK_SH | LOCK_NB) == 0 && fstat(file->get(), &facts) == 0 && facts.st_nlink > 0;
  return sight;
}

void Lease::Impl::Look() {
  const auto seen = See();
  const TimePoint now = MonotonicClock::now();
  if (!seen.ok()) {  // an unreadable folder says nothing about the holder
    if (!unseen_since_) unseen_since_ = now;
    if (now - *unseen_since_ >= rules_.silence) return NotifyLast(events_.lost, seen.status());
    return After(rules_.look, &Impl::Look);
  }
  unseen_since_.reset();
  const LeaseSight& sight = *seen;
  LeaseDecision decision = Decide(&watch_, sight, rules_, now);
  if (decision.take) {
    Status taken = Take(*decision.take);
    if (taken.ok()) {
      if (!decision.reason.empty()) events_.say(fmt::format("{}; taking over", decision.reason));
      After(rules_.beat, &Impl::Beat);
      return asio::post(loop_, [self = shared_from_this()] {
        if (!self->ended_) self->events_.held();
      });
    }
    if (number_) return NotifyLast(events_.lost, std::move(taken));
    if (!absl::IsAlreadyExists(taken)) return NotifyLast(events_.unwritable, std::move(taken));
  } else if (std::string holder = LeaseHolderText(sight.text); holder != waits_for_) {
    events_.say(fmt::format("waiting for {}, which is filling the same folder", holder));
    waits_for_ = std::move(holder);
  }
  After(rules_.look, &Impl::Look);
}

Status Lease::Impl::Take(uint64_t number) {
  const std::string name = FileName(number);
  file_ = Descriptor(openat(folder_.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file_.ok()) return DiskStatus(errno, fmt::format("{}/{}", shown_, name));
  number_ = number;
  locked_ = flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
  Status written = WriteBeat();
  if (!written.ok()) return written;
  const auto numbers = Numbers(folder_.get(), shown_);
  if (!numbers.ok()) return absl::OkStatus();  // older lease files do no harm
  for (uint64_t old : *numbers) {
    if (old < number) unlinkat(folder_.get(), FileName(old).c_str(), 0);
  }
  return absl::OkStatus();
}

Status Lease::Impl::WriteBeat() {
  beaten_ = MonotonicClock::now();
  const std::string text = fmt::format("{} locked={} beat={}\n", who_, locked_ ? 1 : 0, ++beats_);
  if (pwrite(file_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())) return absl::OkStatus();
  return ErrnoStatus(errno, fmt::format("writing {}/{}", shown_, FileName(*number_)));
}

StatusOr<bool> Lease::Impl::StillHeld() const {
  if (!number_) return false;
  MUSTER_ASSIGN_OR_RETURN(const std::optional<uint64_t> highest, Highest(folder_.get(), shown_));
  return highest == number_;
}

Status Lease::Impl::StayHeld() {
  if (MonotonicClock::now() - beaten_ < rules_.beat) return absl::OkStatus();
  // An unreadable folder says nothing about the holder; the next beat checks again.
  if (!StillHeld().value_or(true)) {
    return absl::UnavailableError(
        fmt::format("another initializer has taken {} over: this one was silent for too long", shown_));
  }
  (void)WriteBeat();  // a full disk: others see the silence, take over, and find the disk full as well
  return absl::OkStatus();
}

void Lease::Impl::Beat() {
  Status held = StayHeld();
  if (!held.ok()) return NotifyLast(events_.lost, std::move(held));
  After(rules_.beat, &Impl::Beat);
}

// `last`: one of events_.
void Lease::Impl::NotifyLast(const std::function<void(Status)>& last, Status status) {
  asio::post(loop_, [self = shared_from_this(), &last, status = std::move(status)] {
    if (!std::exchange(self->ended_, true)) last(status);
  });
}

void Lease::Impl::After(Duration pause, void (Impl::*what)()) {
  timer_.expires_after(pause);
  timer_.async_wait([weak = weak_from_this(), what](boost::system::error_code error) {
    auto self = weak.lock();
    if (!error && self && !self->ended_) ((*self).*what)();
  });
}

void Lease::Impl::End() {
  ended_ = true;
  timer_.cancel();
  if (StillHeld().value_or(false)) unlinkat(folder_.get(), FileName(*number_).c_str(), 0);
}

Lease::Lease(asio::io_context& loop, Descriptor folder, std::string shown, LeaseRules rules, Events events)
    : impl_(std::make_shared<Impl>(loop, std::move(folder), std::move(shown), rules, std::move(events))) {}
Lease::~Lease() { impl_->End(); }
void Lease::Begin() { impl_->Look(); }
StatusOr<bool> Lease::StillHeld() { return impl_->StillHeld(); }
Status Lease::StayHeld() { return impl_->StayHeld(); }

}  // namespace muster::initializers
