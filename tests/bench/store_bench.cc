// SPDX-License-Identifier: Apache-2.0
// Load test for any TCPStore server (2.2 or later). Many connections, each with one exchange at a time, are driven by
// one thread, or each by its own (--threads).
//
// The client is as light as possible, so that the figures are the server's: one send per exchange, and answers are
// discarded in the kernel (MSG_TRUNC), not copied.
//
//   store_bench ops --address H:P [--pid PID] [--ops set,get,...] [--clients 1,4,16,64] [--seconds S] [--value BYTES]
//     [--threads]
//   store_bench crowd --address H:P [--pid PID] [--connections N] [--source ADDRESS] [--connect-only]
//   store_bench gloo --address H:P [--pid PID] [--ranks N]
//   store_bench echo     a bare epoll server: the lowest possible cost. Prints "listening on H:P", ends with its stdin.
//
// With --floor (ops) the server at H:P is that echo server: messages of the same sizes, but no store. Prints one line
// of name=value pairs per row. cpu_us is the server's CPU time per operation, from the scheduler's counters of all
// threads of PID.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/text.h"
#include "rendezvous/store/protocol.h"

namespace muster::store {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); }

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

struct Target {
  std::string host = "127.0.0.1";
  std::string source;  // address of this end; "": any
  uint16_t port = 0;
  int pid = 0;

  // CPU time of all threads, in nanoseconds.
  double Cpu() const {
    double total = 0;
    if (pid == 0) return 0;
    for (auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid))) {
      std::ifstream file(task.path() / "schedstat");
      double nanoseconds = 0;
      file >> nanoseconds;
      total += nanoseconds;
    }
    return total;
  }
  long RssKb() const {
    std::ifstream file(fmt::format("/proc/{}/status", pid));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
    }
    return 0;
  }
};

int Dial(const Target& target) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) Die("socket");
  int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (!target.source.empty()) {
    ::inet_pton(AF_INET, target.source.c_str(), &address.sin_addr);
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) Die("bind");
  }
  address.sin_port = htons(target.port);
  ::inet_pton(AF_INET, target.host.c_str(), &address.sin_addr);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) Die("connect");
  return fd;
}

void SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) Die("send");
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

// Drops at most `bytes` of the answer bytes that have arrived. Returns their number.
size_t Discard(int fd, size_t bytes, int flags) {
  ssize_t count = ::recv(fd, nullptr, bytes, MSG_TRUNC | flags);
  if (count <= 0) Die("recv");
  return static_cast<size_t>(count);
}

void ReceiveAll(int fd, size_t bytes) {
  while (bytes > 0) bytes -= Discard(fd, bytes, 0);
}

std::string Hello() {
  std::string bytes;
  PutOp(&bytes, Op::kValidate);
  PutNumber(&bytes, kMagic);
  return bytes;
}

std::string Make(Op op, std::initializer_list<std::string_view> strings, std::optional<int64_t> number = {}) {
  std::string bytes;
  PutOp(&bytes, op);
  for (std::string_view string : strings) PutString(&bytes, string);
  if (number) PutNumber<int64_t>(&bytes, *number);
  return bytes;
}

// The request that one client repeats, and the length of its answer.
struct Exchange {
  std::string request;
  size_t answer = 0;
  int operations = 1;
};

Exchange MakeExchange(const std::string& op, size_t value_size) {
  std::string key = "/default_pg/0//cpu//0/17", value(value_size, 'v'), ping;
  PutOp(&ping, Op::kPing);
  PutNumber<uint32_t>(&ping, 1);
  std::vector<std::string> keys(8, key);
  Exchange exchange;
  if (op == "set") {  // SET has no answer; the answer to the PING after it shows that it is done
    exchange = {Make(Op::kSet, {key, value}) + ping, 4, 1};
  } else if (op == "get") {
    exchange = {Make(Op::kGet, {key}), 8 + value_size, 1};
  } else if (op == "add") {
    exchange = {Make(Op::kAdd, {"/counter"}, 1), 8, 1};
  } else if (op == "compare_set") {
    exchange = {Make(Op::kCompareSet, {key, value, value}), 8 + value_size, 1};
  } else if (op == "wait") {
    PutKeys(&exchange.request, Op::kWait, std::vector<std::string>{key});
    exchange.answer = 1;
  } else if (op == "multi_get") {
    PutKeys(&exchange.request, Op::kMultiGet, keys);
    exchange.answer = 8 * (8 + value_size);
  } else if (op == "mix") {  // what a rank does: publish, read, count
    exchange.request = Make(Op::kSet, {key, value}) + Make(Op::kGet, {key}) + Make(Op::kAdd, {"/counter"}, 1);
    exchange.answer = 8 + value_size + 8;
    exchange.operations = 3;
  } else {
    fmt::print(stderr, "unknown operation {}\n", op);
    std::exit(64);
  }
  return exchange;
}

struct Client {
  int fd = -1;
  size_t missing = 0;
  Clock::time_point asked;
};

// Opens a connection and waits for one answer, since libuv's server may look up names first.
int Connect(const Target& target, const Exchange& exchange, size_t value_size, bool floor) {
  const int fd = Dial(target);
  if (floor) {
    uint64_t sizes[2] = {exchange.request.size(), exchange.answer};
    SendAll(fd, {reinterpret_cast<char*>(sizes), sizeof(sizes)});
    return fd;
  }
  std::string first = Hello() + Make(Op::kSet, {"/default_pg/0//cpu//0/17", std::string(value_size, 'v')});
  PutOp(&first, Op::kPing);
  PutNumber<uint32_t>(&first, 1);
  SendAll(fd, first);
  ReceiveAll(fd, 4);
  return fd;
}

constexpr double kWarmUp = 0.2;  // length of the warm-up, as a part of the measured time

// The figures between the warm-up and the end.
struct Seen {
  uint64_t done = 0;
  std::vector<float> latencies;  // microseconds
  double seconds = 0, cpu = 0;   // cpu: nanoseconds
};

void Print(Seen seen, const std::string& op, int clients, size_t value_size) {
  std::sort(seen.latencies.begin(), seen.latencies.end());
  auto at = [&](double part) {
    return seen.latencies.empty() ? 0 : seen.latencies[size_t(part * double(seen.latencies.size() - 1))];
  };
  fmt::print("op={} clients={} value={} ops_s={:.0f} p50_us={:.0f} p99_us={:.0f} cpu_us={:.2f}\n", op, clients,
             value_size, double(seen.done) / seen.seconds, at(0.5), at(0.99), seen.cpu / 1e3 / double(seen.done));
  std::fflush(stdout);
}

// Each client is a thread that waits for its answer, as ranks do.
Seen ByThreads(const Target& target, const Exchange& exchange, int clients, double seconds, size_t value_size,
               bool floor) {
  enum Phase { kWarm, kMeasured, kOver };
  std::atomic<Phase> phase = kWarm;
  std::vector<Seen> seen(static_cast<size_t>(clients));
  std::vector<std::thread> threads;
  for (Seen& its : seen) {
    const int fd = Connect(target, exchange, value_size, floor);
    threads.emplace_back([&, fd] {
      while (phase != kOver) {
        const Clock::time_point asked = Clock::now();
        SendAll(fd, exchange.request);
        ReceiveAll(fd, exchange.answer);
        if (phase != kMeasured) continue;
        its.done += static_cast<uint64_t>(exchange.operations);
        its.latencies.push_back(static_cast<float>(Seconds(asked) * 1e6));
      }
      ::close(fd);
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(kWarmUp * seconds));
  Seen all;
  all.cpu = target.Cpu();
  const Clock::time_point start = Clock::now();
  phase = kMeasured;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  phase = kOver;
  all.seconds = Seconds(start);
  all.cpu = target.Cpu() - all.cpu;
  for (std::thread& thread : threads) thread.join();
  for (const Seen& its : seen) {
    all.done += its.done;
    all.latencies.insert(all.latencies.end(), its.latencies.begin(), its.latencies.end());
  }
  return all;
}

// One thread drives all clients. It seldom has to wait, since mostly the next answer is already there.
Seen ByOneThread(const Target& target, const Exchange& exchange, int clients, double seconds, size_t value_size,
                 bool floor) {
  int set = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<Client> all(static_cast<size_t>(clients));
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].fd = Connect(target, exchange, value_size, floor);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = static_cast<uint32_t>(i);
    ::epoll_ctl(set, EPOLL_CTL_ADD, all[i].fd, &event);
  }
  auto ask = [&](Client& client) {
    client.asked = Clock::now();
    client.missing = exchange.answer;
    SendAll(client.fd, exchange.request);
  };
  Seen seen;
  epoll_event events[64];
  Clock::time_point start = Clock::now(), measured = start;
  bool warm = false, stop = false;
  for (Client& client : all) ask(client);
  int under_way = clients;
  while (under_way > 0) {
    int count = ::epoll_wait(set, events, 64, 60'000);
    if (count <= 0) Die("the server does not answer");
    for (int i = 0; i < count; ++i) {
      Client& client = all[events[i].data.u32];
      client.missing -= Discard(client.fd, client.missing, MSG_DONTWAIT);
      if (client.missing > 0) continue;
      if (warm && !stop) {
        seen.done += static_cast<uint64_t>(exchange.operations);
        seen.latencies.push_back(static_cast<float>(Seconds(client.asked) * 1e6));
      }
      if (stop) {
        --under_way;
      } else {
        ask(client);
      }
    }
    if (!warm && Seconds(start) > kWarmUp * seconds) {
      warm = true;
      seen.cpu = target.Cpu();
      measured = Clock::now();
    } else if (warm && !stop && Seconds(measured) > seconds) {
      stop = true;
      seen.seconds = Seconds(measured);
      seen.cpu = target.Cpu() - seen.cpu;
    }
  }
  for (Client& client : all) ::close(client.fd);
  ::close(set);
  return seen;
}

// Sends `bytes` on every connection and returns when each has received `answer` bytes.
void RoundOfAll(int set, std::vector<Client>& all, std::string_view bytes, size_t answer) {
  for (Client& client : all) client.missing = answer;
  if (!bytes.empty()) {
    for (Client& client : all) SendAll(client.fd, bytes);
  }
  std::vector<epoll_event> events(1024);
  for (size_t left = all.size(); left > 0;) {
    int count = ::epoll_wait(set, events.data(), static_cast<int>(events.size()), 60'000);
    if (count <= 0) Die("the server does not answer");
    for (int i = 0; i < count; ++i) {
      Client& client = all[events[i].data.u32];
      client.missing -= Discard(client.fd, client.missing, MSG_DONTWAIT);
      if (client.missing == 0) --left;
    }
  }
}

// gloo's start: each rank publishes its address. For each peer it then waits twice for the address, and reads it.
// Keys contain the number of this process, since a server may serve several runs.
void Gloo(const Target& target, int ranks) {
  int set = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<Client> all(static_cast<size_t>(ranks));
  std::vector<int> step(all.size(), 0);
  const std::string value(170, 'a');
  std::string hello = Hello();
  PutOp(&hello, Op::kPing);
  PutNumber<uint32_t>(&hello, 1);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].fd = Dial(target);
    SendAll(all[i].fd, hello);
    ReceiveAll(all[i].fd, 4);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = static_cast<uint32_t>(i);
    ::epoll_ctl(set, EPOLL_CTL_ADD, all[i].fd, &event);
  }
  auto key = [](size_t rank) { return fmt::format("/gloo{}//cpu//0/{}", ::getpid(), rank); };
  std::vector<std::string> waits(all.size()), gets(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    PutKeys(&waits[i], Op::kWait, std::vector<std::string>{key(i)});
    gets[i] = Make(Op::kGet, {key(i)});
  }
  auto ask = [&](size_t i) {
    size_t peer = (static_cast<size_t>(step[i] / 3) + i) % all.size();
    bool wait = step[i]++ % 3 < 2;
    all[i].missing = wait ? 1 : 8 + value.size();
    SendAll(all[i].fd, wait ? waits[peer] : gets[peer]);
  };
  double cpu = target.Cpu();
  Clock::time_point start = Clock::now();
  for (size_t i = 0; i < all.size(); ++i) {
    SendAll(all[i].fd, Make(Op::kSet, {key(i), value}));
    ask(i);
  }
  std::vector<epoll_event> events(1024);
  for (int left = ranks; left > 0;) {
    int count = ::epoll_wait(set, events.data(), 1024, 60'000);
    if (count <= 0) Die("the server does not answer");
    for (int e = 0; e < count; ++e) {
      size_t i = events[e].data.u32;
      if ((all[i].missing -= Discard(all[i].fd, all[i].missing, MSG_DONTWAIT)) > 0) continue;
      if (step[i] == 3 * ranks) {
        --left;
      } else {
        ask(i);
      }
    }
  }
  double requests = double(ranks) * (3.0 * ranks + 1);
  fmt::print("gloo ranks={} requests={:.0f} seconds={:.2f} cpu_us={:.2f}\n", ranks, requests, Seconds(start),
             (target.Cpu() - cpu) / 1e3 / requests);
  for (Client& client : all) ::close(client.fd);
  ::close(set);
}

void Crowd(const Target& target, int connections, bool connect_only) {
  long before = target.RssKb();
  int set = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<Client> all(static_cast<size_t>(connections));
  std::string hello = Hello();
  PutOp(&hello, Op::kPing);
  PutNumber<uint32_t>(&hello, 7);
  double cpu = target.Cpu();
  Clock::time_point start = Clock::now();
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].fd = Dial(target);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = static_cast<uint32_t>(i);
    ::epoll_ctl(set, EPOLL_CTL_ADD, all[i].fd, &event);
    SendAll(all[i].fd, hello);
  }
  RoundOfAll(set, all, {}, 4);
  double up = Seconds(start);
  cpu = target.Cpu() - cpu;
  long idle = target.RssKb();
  fmt::print("connect n={} per_s={:.0f} cpu_us={:.1f} rss_kb={} before_kb={} bytes_each={:.0f}\n", connections,
             connections / up, cpu / 1e3 / connections, idle, before, double(idle - before) * 1024 / connections);
  std::fflush(stdout);
  if (connect_only) std::exit(0);
  for (int i = 0; i < 5; ++i) {
    start = Clock::now();
    RoundOfAll(set, all, Make(Op::kBarrier, {fmt::format("/barrier{}-{}", ::getpid(), i)}, connections), 1);
    fmt::print("barrier n={} ms={:.0f}\n", connections, Seconds(start) * 1e3);
  }
  int setter = Dial(target);
  for (int i = 0; i < 5; ++i) {
    std::string key = fmt::format("/wake{}-{}", ::getpid(), i), wait;
    PutKeys(&wait, Op::kWait, std::vector<std::string>{key});
    for (Client& client : all) SendAll(client.fd, wait);
    std::string ping = i == 0 ? hello : hello.substr(5);  // one round trip after the last wait, so that all wait
    SendAll(setter, ping);
    ReceiveAll(setter, 4);
    start = Clock::now();
    SendAll(setter, Make(Op::kSet, {key, ""}));
    RoundOfAll(set, all, {}, 1);
    fmt::print("wake n={} ms={:.0f}\n", connections, Seconds(start) * 1e3);
  }
  fmt::print("memory rss_kb={} bytes_each={:.0f}\n", target.RssKb(),
             double(target.RssKb() - before) * 1024 / connections);
  std::fflush(stdout);
  for (Client& client : all) ::close(client.fd);
  ::close(setter);
  ::close(set);
}

// The lowest possible cost: one recv and one send per exchange, both of a fixed size, and no store.
int Echo() {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  int on = 1;
  ::setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener, SOMAXCONN) != 0)
    Die("echo");
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  fmt::print("listening on 127.0.0.1:{}\n", ntohs(address.sin_port));
  std::fflush(stdout);
  struct Peer {
    uint64_t request = 0, answer = 0, got = 0;
  };
  std::vector<Peer> peers(65536);
  std::vector<char> buffer(64 << 10), reply(16 << 20);
  int set = ::epoll_create1(EPOLL_CLOEXEC);
  for (int fd : {listener, 0}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
  }
  epoll_event events[256];
  for (;;) {
    int count = ::epoll_wait(set, events, 256, -1);
    for (int i = 0; i < count; ++i) {
      int fd = events[i].data.fd;
      if (fd == 0) return 0;
      if (fd == listener) {
        int peer = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = peer;
        ::epoll_ctl(set, EPOLL_CTL_ADD, peer, &event);
        uint64_t sizes[2];
        if (::recv(peer, sizes, sizeof(sizes), MSG_WAITALL) != sizeof(sizes)) return 1;
        peers[size_t(peer)] = {sizes[0], sizes[1], 0};
        continue;
      }
      Peer& peer = peers[size_t(fd)];
      ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) {
        ::close(fd);
        continue;
      }
      peer.got += static_cast<uint64_t>(got);
      if (peer.got >= peer.request) {
        uint64_t answers = peer.got / peer.request;
        peer.got %= peer.request;
        SendAll(fd, {reply.data(), answers * peer.answer});
      }
    }
  }
}

}  // namespace

int Main(int argc, char** argv) {
  CLI::App app("load for a TCPStore server");
  app.require_subcommand(1);
  std::string address;
  Target target;
  std::vector<std::string> operations = {"set", "get", "add", "wait", "compare_set", "multi_get", "mix"};
  std::vector<int> clients = {1, 4, 16, 64};
  double seconds = 1;
  size_t value = 64;
  int connections = 10'000, ranks = 0;
  bool floor = false, threads = false, connect_only = false;
  CLI::App* ops = app.add_subcommand("ops", "operations in a closed loop");
  CLI::App* crowd = app.add_subcommand("crowd", "many connections: setting up, memory, barrier, waking all");
  CLI::App* gloo = app.add_subcommand("gloo", "the key traffic of gloo's bring-up");
  CLI::App* echo = app.add_subcommand("echo", "the echo server");
  for (CLI::App* sub : {ops, crowd, gloo}) {
    sub->add_option("--address", address)->required();
    sub->add_option("--pid", target.pid);
  }
  ops->add_option("--ops", operations)->delimiter(',');
  ops->add_option("--clients", clients)->delimiter(',');
  ops->add_option("--seconds", seconds);
  ops->add_option("--value", value);
  ops->add_flag("--floor", floor);
  ops->add_flag("--threads", threads, "each client is a thread");
  crowd->add_option("--connections", connections);
  crowd->add_option("--source", target.source);
  crowd->add_flag("--connect-only", connect_only);
  gloo->add_option("--ranks", ranks)->default_val(512);
  CLI11_PARSE(app, argc, argv);
  if (*echo) return Echo();
  size_t colon = address.rfind(':');
  target.host = address.substr(0, colon);
  target.port = static_cast<uint16_t>(std::stoi(address.substr(colon + 1)));
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (*crowd) Crowd(target, connections, connect_only);
  if (*gloo) Gloo(target, ranks);
  if (*ops) {
    for (const std::string& op : operations) {
      const Exchange exchange = MakeExchange(op, value);
      for (int count : clients) {
        Print((threads ? ByThreads : ByOneThread)(target, exchange, count, seconds, value, floor), op, count, value);
      }
    }
  }
  return 0;
}

}  // namespace muster::store

int main(int argc, char** argv) { return muster::store::Main(argc, argv); }
