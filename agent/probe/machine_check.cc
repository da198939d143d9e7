// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/machine_check.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "agent/probe/peer_round_trip.h"
#include "base/descriptors.h"
#include "base/host_facts.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr int64_t kMost = int64_t{256} << 20;  // bytes of memory
constexpr int64_t kChunk = int64_t{1} << 20;   // bytes copied between two looks at the clock
constexpr int kMostThreads = 16;
constexpr size_t kBlock = 4 << 20;  // bytes of one write to the disk
constexpr size_t kMostWritten = 64 << 20;
constexpr int64_t kUnknownCache = 32 << 20;
constexpr int kRoundTrips = 200;
constexpr unsigned kTmpfs = 0x01021994;
constexpr unsigned kRamfs = 0x858458f6;

TimePoint Now() { return MonotonicClock::now(); }
double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

MachineFigure CannotSay(std::string name, std::string where, std::string why) {
  return {std::move(name), std::move(where), std::nullopt, std::move(why)};
}

std::string Reason(int error) { return std::string(Message(ErrnoStatus(error, ""))).substr(2); }

// --- memory ---

// The bytes that the buffers of all threads may have together.
int64_t BufferBytes() {
  HostFacts facts = ReadHostFacts();
  int64_t room = facts.memory_total > 0 ? facts.memory_total : kMost * 4;
  if (facts.memory_limit) {
    HostFs fs;
    int64_t used = 0;
    for (const char* file : {"/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes"}) {
      if (auto text = fs.ReadLine(file)) used = ParseInt(*text).value_or(0);
    }
    room = std::min(room, std::max<int64_t>(*facts.memory_limit - used, 0));
  }
  return std::min(kMost, room / 4);
}

// For each CPU, which CPUs share its last-level cache. `bytes` gets the size of the largest of these caches.
std::vector<std::pair<int, std::string>> Caches(const std::vector<int>& cpus, int64_t* bytes) {
  HostFs fs;
  std::vector<std::pair<int, std::string>> caches;
  *bytes = 0;
  for (int cpu : cpus) {
    std::string shared = "?";
    for (int index = 4; index >= 0; --index) {
      std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}", cpu, index);
      auto list = fs.ReadLine(folder + "/shared_cpu_list");
      auto size = fs.ReadLine(folder + "/size");  // "32768K"
      if (!list || !size) continue;
      shared = *list;
      *bytes = std::max(*bytes, ParseInt(std::string_view(*size).substr(0, size->size() - 1)).value_or(0) << 10);
      break;
    }
    caches.emplace_back(cpu, shared);
  }
  if (*bytes == 0) *bytes = kUnknownCache;
  return caches;
}

// Copies from one half of its memory to the other until the deadline. The first pass, in which the kernel makes the
// pages, is not counted. It takes half of the time at most; memory that it has not reached stays unused.
class Copier {
 public:
  Copier(int64_t bytes, TimePoint until) : half_(std::max(bytes / 2 / kChunk, int64_t{1}) * kChunk), until_(until) {}
  ~Copier() {
    if (memory_ != MAP_FAILED) munmap(memory_, Whole());
  }
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  bool Begin() {
    memory_ = mmap(nullptr, Whole(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory_ != MAP_FAILED;
  }

  void Run(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(cpu), &set);
    sched_setaffinity(0, sizeof set, &set);  // if that is refused, the kernel chooses the CPU
    char* from = static_cast<char*>(memory_);
    char* to = from + half_;
    TimePoint began = Now();
    const TimePoint half_time = began + (until_ - began) / 2;
    for (; made_ < half_ && (made_ == 0 || Now() < half_time); made_ += kChunk) {
      memset(from + made_, 0x5a, kChunk);
      memset(to + made_, 0xa5, kChunk);
    }
    began = Now();
    TimePoint now = began;
    int64_t copied = 0;
    while (now < until_) {
      int64_t at = copied % made_;
      memcpy(to + at, from + at, kChunk);
      asm volatile("" : : "r"(to) : "memory");  // keeps copies that nobody reads
      copied += kChunk;
      now = Now();
    }
    rate_ = now > began ? static_cast<double>(copied) / Seconds(now - began) : 0;
  }

  double rate() const { return rate_; }
  int64_t used() const { return 2 * made_; }  // bytes

 private:
  size_t Whole() const { return static_cast<size_t>(2 * half_); }
  const int64_t half_;
  const TimePoint until_;
  void* memory_ = MAP_FAILED;
  int64_t made_ = 0;  // bytes of each half that have pages
  double rate_ = 0;
};

// --- loopback ---

// Connects two sockets over 127.0.0.1. Returns 0 or an errno.
int ConnectLoopback(int* one, int* other) {
  Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (listener.get() < 0) return errno;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.get(), generic, length) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), generic, &length) != 0) {
    return errno;
  }
  // The kernel completes a connection to a listener of the same machine by itself, within the call.
  int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (client < 0) return errno;
  *one = client;
  if (connect(client, generic, length) != 0 && errno != EINPROGRESS) return errno;
  if (!ReadyBy(listener.get(), POLLIN, Now() + std::chrono::milliseconds(100))) return ETIMEDOUT;
  *other = accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (*other < 0) return errno;
  int on = 1;
  for (int fd : {client, *other}) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return 0;
}

// Sends or receives one byte; waits until that is possible. False at the deadline.
bool Give(int fd, TimePoint until) {
  char byte = 1;
  return send(fd, &byte, 1, MSG_NOSIGNAL) == 1 ||
         (ReadyBy(fd, POLLOUT, until) && send(fd, &byte, 1, MSG_NOSIGNAL) == 1);
}
bool Take(int fd, TimePoint until) {
  char byte;
  return ReadyBy(fd, POLLIN, until) && recv(fd, &byte, 1, 0) == 1;
}

// --- disk ---

struct Written {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  int error = 0;
  size_t bytes = 0;  // safe on disk
  double seconds = 0;
};

int OpenNameless(const std::string& folder) {
  int fd = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  std::string pattern = folder + "/.muster-check.XXXXXX";
  fd = mkostemp(pattern.data(), O_CLOEXEC);
  if (fd >= 0) unlink(pattern.c_str());
  return fd;
}

// Runs in a thread that may never end, so it owns what it uses.
void Write(const std::shared_ptr<Written>& result, const std::string& folder, TimePoint until) {
  auto end = [&](int error) {
    std::lock_guard lock(result->mutex);
    result->error = error;
    result->done = true;
    result->changed.notify_all();
  };
  Descriptor file(OpenNameless(folder));
  if (file.get() < 0) return end(errno);
  std::vector<uint64_t> block(kBlock / sizeof(uint64_t));
  uint64_t noise = 0x9e3779b97f4a7c15;  // data that does not compress
  for (uint64_t& word : block) {
    noise ^= noise << 13;
    noise ^= noise >> 7;
    noise ^= noise << 17;
    word = noise;
  }
  TimePoint began = Now();
  for (size_t total = 0; total < kMostWritten && Now() < until; total += kBlock) {
    for (size_t at = 0; at < kBlock;) {
      ssize_t wrote = write(file.get(), reinterpret_cast<const char*>(block.data()) + at, kBlock - at);
      if (wrote <= 0) return end(wrote == 0 ? ENOSPC : errno);
      at += static_cast<size_t>(wrote);
    }
    if (fdatasync(file.get()) != 0) return end(errno);
    std::lock_guard lock(result->mutex);
    result->bytes = total + kBlock;
    result->seconds = Seconds(Now() - began);
  }
  end(0);
}

}  // namespace

std::vector<int> CopyingCpus(const std::vector<std::pair<int, std::string>>& caches, int64_t cache_bytes,
                             int64_t buffer_bytes, int at_most) {
  std::map<std::string, std::vector<int>> by_cache;
  for (const auto& [cpu, shared] : caches) by_cache[shared].push_back(cpu);
  size_t overflown = static_cast<size_t>(std::max<int64_t>(buffer_bytes / (2 * std::max<int64_t>(cache_bytes, 1)), 1));
  size_t used = std::min(overflown, by_cache.size());
  size_t wanted = static_cast<size_t>(std::max(at_most, 1));
  std::vector<int> chosen;
  for (size_t round = 0; chosen.size() < wanted; ++round) {  // one CPU of each cache, then the next of each
    size_t before = chosen.size();
    auto cache = by_cache.begin();
    for (size_t i = 0; i < used && chosen.size() < wanted; ++i, ++cache) {
      if (round < cache->second.size()) chosen.push_back(cache->second[round]);
    }
    if (chosen.size() == before) break;
  }
  return chosen;
}

MachineFigure MeasureMemory(TimePoint until) {
  HostFacts facts = ReadHostFacts();
  const int threads = std::min(kMostThreads, ContainerCpus(facts));
  int64_t bytes = BufferBytes();
  if (bytes < 2 * kChunk) return CannotSay("memory", "", "the cgroup has less than 8 MiB left");
  int64_t cache = 0;
  auto caches = Caches(UsableCpus(), &cache);
  std::vector<int> cpus =
      CopyingCpus(caches, cache, bytes, std::min<int>(threads, static_cast<int>(bytes / kChunk / 2)));
  if (cpus.empty()) cpus.push_back(0);
  std::vector<std::unique_ptr<Copier>> copiers;
  for (size_t i = 0; i < cpus.size(); ++i) {
    copiers.push_back(std::make_unique<Copier>(bytes / static_cast<int64_t>(cpus.size()), until));
    if (!copiers.back()->Begin())
      return CannotSay("memory", "", fmt::format("cannot allocate its buffers: {}", Reason(errno)));
  }
  std::vector<std::thread> running;
  for (size_t i = 0; i < cpus.size(); ++i) running.emplace_back([&, i] { copiers[i]->Run(cpus[i]); });
  for (std::thread& thread : running) thread.join();
  double total = 0;
  int64_t used = 0;
  for (const auto& copier : copiers) {
    total += copier->rate();
    used += copier->used();
  }
  if (total == 0) return CannotSay("memory", "", "there was no time left for it");
  return {"memory", "", total / 1e9,
          used >= 2 * cache ? ""
          : bytes < 2 * cache
              ? fmt::format("caches included: they hold more than half of the {} MiB that may be copied", bytes >> 20)
              : "caches included: there was too little time to copy more than they hold"};
}

std::vector<MachineFigure> MeasureLoopback(TimePoint until) {
  int one = -1;
  int other = -1;
  int error = ConnectLoopback(&one, &other);
  Descriptor first(one), second(other);
  if (error != 0) {
    std::string why = fmt::format("no connection over 127.0.0.1: {}", Reason(error));
    return {CannotSay("loopback", "", why), CannotSay("loopback round trip", "", why)};
  }
  // First the round trips, on the idle stream: a third of the time.
  TimePoint talk_until = Now() + (until - Now()) / 3;
  std::thread echo([&] {
    for (int i = 0; i < kRoundTrips && Take(other, talk_until) && Give(other, talk_until); ++i) {
    }
  });
  std::vector<double> trips;
  // After a time-out a byte may be left in the stream; the reader below receives it.
  for (int i = 0; i < kRoundTrips && Now() < talk_until; ++i) {
    TimePoint began = Now();
    if (!Give(one, talk_until) || !Take(one, talk_until)) break;
    trips.push_back(Seconds(Now() - began) * 1e3);
  }
  echo.join();

  TimePoint began = Now();
  std::atomic<bool> over = false;
  int64_t received = 0;
  std::thread reader([&] {
    std::vector<char> buffer(size_t{256} << 10);
    while (!over && Now() < until && ReadyBy(other, POLLIN, until)) {
      ssize_t got = recv(other, buffer.data(), buffer.size(), 0);
      if (got > 0) received += got;
    }
  });
  std::vector<char> buffer(size_t{256} << 10, 'x');
  while (Now() < until) {
    if (send(one, buffer.data(), buffer.size(), MSG_NOSIGNAL) < 0 && !ReadyBy(one, POLLOUT, until)) break;
  }
  over = true;
  reader.join();
  double took = Seconds(Now() - began);

  std::vector<MachineFigure> figures;
  if (received > 0) {
    figures.push_back({"loopback", "", static_cast<double>(received) / took / 1e9, ""});
  } else {
    figures.push_back(CannotSay("loopback", "", "no data arrived in time"));
  }
  if (trips.empty()) {
    figures.push_back(CannotSay("loopback round trip", "", "no byte came back in time"));
  } else {
    std::nth_element(trips.begin(), trips.begin() + static_cast<ptrdiff_t>(trips.size() / 2), trips.end());
    figures.push_back({"loopback round trip", "", trips[trips.size() / 2], ""});
  }
  return figures;
}

MachineFigure MeasureDisk(const std::string& folder, TimePoint until) {
  auto result = std::make_shared<Written>();
  // statfs() is called in the thread, too: on a network file system whose server is gone it may hang.
  auto kind = std::make_shared<std::atomic<bool>>(false);
  std::thread([result, folder, until, kind] {
    struct statfs facts {};
    if (statfs(folder.c_str(), &facts) == 0) {
      auto type = static_cast<unsigned>(facts.f_type);
      *kind = type == kTmpfs || type == kRamfs;
    }
    if (!*kind) return Write(result, folder, until);
    std::lock_guard lock(result->mutex);
    result->done = true;
    result->changed.notify_all();
  }).detach();
  std::unique_lock lock(result->mutex);
  // A write that began in time may end somewhat later.
  result->changed.wait_for(lock, std::max(until - Now(), Duration::zero()) + std::chrono::milliseconds(50),
                           [&] { return result->done; });
  if (*kind) return CannotSay("disk", folder, "the folder is in memory (tmpfs)");
  if (result->bytes > 0) return {"disk", folder, static_cast<double>(result->bytes) / result->seconds / 1e6, ""};
  if (!result->done) return {"disk", folder, 0, "less than 4 MiB reached the disk in time"};
  if (result->error == 0) return CannotSay("disk", folder, "there was no time left for it");
  return CannotSay("disk", folder, Reason(result->error));
}

std::vector<MachineFigure> MeasureMachine(const MachineCheckOptions& options) {
  TimePoint began = Now();
  auto share = [&](double part) { return began + std::chrono::duration_cast<Duration>(options.limit * part); };
  std::vector<MachineFigure> figures;
  // The parts that need a quiet machine come first, the disk last.
  std::vector<MachineFigure> peers;
  if (!options.peers.empty()) peers = MeasurePeers(options.peers, share(0.25));
  for (MachineFigure& figure : MeasureLoopback(share(0.45))) figures.push_back(std::move(figure));
  figures.insert(figures.begin(), MeasureMemory(share(0.7)));
  figures.push_back(MeasureDisk(options.disk, share(0.95)));
  for (MachineFigure& figure : peers) figures.push_back(std::move(figure));
  return figures;
}

}  // namespace muster::agent
