// SPDX-License-Identifier: Apache-2.0
// Load test of the coordinator. N nodes are in this process, the coordinator is in a child process of it.
//
//     rendezvous_load [--nodes 1000] [--per-connection 100] [--idle SECONDS] [--json]
//
// Prints: time from the first dial to the last Start, CPU of the coordinator per join, its memory per node, time from a
// failure's report to the last Stop, and to the last Start of the next round.
#include <arpa/inet.h>
#include <grpcpp/channel.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/process_stat.h"
#include "base/text.h"
#include "base/version.h"
#include "net/grpc_channel.h"
#include "rendezvous/coordinator_service.h"
#include "rendezvous/grpc_link.h"

namespace muster::rendezvous {
namespace {

struct Settings {
  int nodes = 1000;
  int per_connection = 100;
  bool json = false;
  int idle_s = 0;  // after the first round, counts wake-ups of both processes for this many seconds
};

struct Usage {
  double cpu_seconds = 0;
  double rss_kb = 0;
};

Usage UsageOf(pid_t pid) {
  Usage usage;
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  const ProcessStat process = *ProcessStat::Parse(text);  // utime, stime, rss
  double ticks = static_cast<double>(*process.Field(14) + *process.Field(15));
  usage.cpu_seconds = ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  usage.rss_kb = static_cast<double>(*process.Field(24)) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
  return usage;
}

// Serves until it is killed; writes its port to `out`.
[[noreturn]] void RunCoordinator(int out) {
  boost::asio::io_context loop;
  Coordinator coordinator(loop, {});
  CoordinatorService::Options options;
  options.host = "127.0.0.1";
  auto served = CoordinatorService::Serve(loop, coordinator, options);
  if (!served.ok()) _exit(1);
  int port = (*served)->port();
  if (write(out, &port, sizeof port) != sizeof port) _exit(1);
  auto work = boost::asio::make_work_guard(loop);
  loop.run();
  _exit(0);
}

// Voluntary context switches of all threads of the process.
long WakeUpsOf(pid_t pid) {
  long total = 0;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), ignored)) {
    std::ifstream status(task.path() / "status");
    std::string word;
    while (status >> word) {
      long count = 0;
      if (word == "voluntary_ctxt_switches:" && status >> count) total += count;
    }
  }
  return total;
}

struct Fleet {
  explicit Fleet(boost::asio::io_context& loop) : loop(loop), queue(net::MakeCallQueue(loop)) {}

  bool Dial(const Settings& settings, int port) {
    JobOptions options;
    options.min_nodes = options.max_nodes = settings.nodes;
    options.max_restarts = 10;
    options.heartbeat_timeout = std::chrono::minutes(10);  // these nodes do not beat
    std::shared_ptr<grpc::Channel> channel;
    links.reserve(static_cast<size_t>(settings.nodes));
    rounds.resize(static_cast<size_t>(settings.nodes));
    for (int node = 0; node < settings.nodes; ++node) {
      if (node % settings.per_connection == 0) {
        int fd = Connect(port);
        if (fd < 0) {
          std::perror("connect");
          return false;
        }
        channel = ChannelOn(fd, fmt::format("127.0.0.1:{}", port));
      }
      Hello hello;
      hello.protocol = kRendezvousProtocol;
      hello.version = "load";
      hello.run_id = "load";
      hello.node.name = fmt::format("node-{}", node);
      hello.node.incarnation = fmt::format("incarnation-{}", node);
      hello.node.slots = 8;
      hello.node.host = hello.node.name;
      hello.node.pid = 1000 + node;
      hello.node.control_address = fmt::format("10.0.{}.{}:29400", node / 256, node % 256);
      hello.node.store_host = fmt::format("10.0.{}.{}", node / 256, node % 256);
      hello.node.store_port = 40000;
      hello.options = options;
      Link::Events events;
      events.connected = [this, node, hello] { links[static_cast<size_t>(node)]->Send(hello); };
      events.message = [this, node](CoordinatorMessage message) { Heard(node, message); };
      events.closed = [this](attendance::Loss, const std::string& why) {
        if (lost++ == 0) std::fprintf(stderr, "a node was lost: %s\n", why.c_str());
      };
      links.push_back(TalkOn(*queue, channel, "", std::move(events)));
      if (node % 64 == 0) loop.poll();
    }
    return true;
  }

  static int Connect(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return -1;
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
  }

  void Heard(int node, const CoordinatorMessage& message) {
    if (const auto* start = std::get_if<Start>(&message)) {
      rounds[static_cast<size_t>(node)] = start->assignment.id;
      ++started;
    } else if (std::holds_alternative<Stop>(message)) {
      ++stopped;
    } else if (std::holds_alternative<Finish>(message)) {
      ++finished;
    } else if (const auto* refuse = std::get_if<Refuse>(&message)) {
      std::fprintf(stderr, "refused: %s\n", refuse->reason.c_str());
    }
  }

  double Until(const std::function<bool()>& done) {
    TimePoint begun = MonotonicClock::now();
    while (!done() && lost == 0) loop.run_one();
    return std::chrono::duration<double>(MonotonicClock::now() - begun).count();
  }

  boost::asio::io_context& loop;
  std::unique_ptr<net::GrpcQueue> queue;
  std::vector<std::unique_ptr<Link>> links;
  std::vector<RoundId> rounds;
  int started = 0;
  int stopped = 0;
  int finished = 0;
  int lost = 0;
};

int Run(const Settings& settings) {
  int ports[2];
  if (pipe(ports) != 0) return 1;
  pid_t child = fork();
  if (child == 0) {
    close(ports[0]);
    RunCoordinator(ports[1]);
  }
  int port = 0;
  if (read(ports[0], &port, sizeof port) != sizeof port) return 1;
  Usage empty = UsageOf(child);

  boost::asio::io_context loop;
  Fleet fleet(loop);
  int nodes = settings.nodes;
  TimePoint begun = MonotonicClock::now();
  if (!fleet.Dial(settings, port)) return 1;
  fleet.Until([&] { return fleet.started == nodes; });
  double formed = std::chrono::duration<double>(MonotonicClock::now() - begun).count();
  Usage joined = UsageOf(child);

  if (settings.idle_s > 0) {
    long before[] = {WakeUpsOf(child), WakeUpsOf(getpid())};
    boost::asio::steady_timer pause(loop, std::chrono::seconds(settings.idle_s));
    bool over = false;
    pause.async_wait([&](const boost::system::error_code&) { over = true; });
    fleet.Until([&] { return over; });
    std::printf("idle, no beats: %.2f wake-ups a second in the coordinator, %.2f in the nodes' process\n",
                static_cast<double>(WakeUpsOf(child) - before[0]) / settings.idle_s,
                static_cast<double>(WakeUpsOf(getpid()) - before[1]) / settings.idle_s);
  }

  WorkerFailure failure;
  failure.node = "node-0";
  failure.rank = 3;
  failure.exit_code = 1;
  fleet.links[0]->Send(Report{fleet.rounds[0], {failure}, std::chrono::seconds(1), {}});
  // The failed node gets no Stop.
  double stop = fleet.Until([&] { return fleet.stopped >= nodes - 1; });
  for (int node = 0; node < nodes; ++node) {
    fleet.links[static_cast<size_t>(node)]->Send(Ready{fleet.rounds[static_cast<size_t>(node)], 40001});
  }
  double restart = fleet.Until([&] { return fleet.started == 2 * nodes; });
  Usage restarted = UsageOf(child);
  for (int node = 0; node < nodes; ++node) {
    fleet.links[static_cast<size_t>(node)]->Send(
        Report{fleet.rounds[static_cast<size_t>(node)], {}, std::chrono::seconds(1), {}});
  }
  double finish = fleet.Until([&] { return fleet.finished == nodes; });
  Usage last = UsageOf(child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  double cpu_ms = (joined.cpu_seconds - empty.cpu_seconds) * 1000 / nodes;
  double rss = (last.rss_kb - empty.rss_kb) / nodes;
  const char* format =
      settings.json
          ? "{{\"nodes\":{},\"per_connection\":{},\"round_s\":{:.3f},\"join_cpu_ms\":{:.3f},"
            "\"rss_kb_per_node\":{:.1f},\"stop_s\":{:.3f},\"next_round_s\":{:.3f},\"finish_s\":{:.3f},"
            "\"restart_cpu_ms\":{:.3f}}}\n"
          : "{} nodes, {} a connection: round {:.3f} s, {:.3f} ms CPU a join, {:.1f} KB a node, stop {:.3f} s, "
            "next round {:.3f} s, finish {:.3f} s, {:.3f} ms CPU a restart and node\n";
  std::string line = fmt::format(fmt::runtime(format), nodes, settings.per_connection, formed, cpu_ms, rss, stop,
                                 restart, finish, (restarted.cpu_seconds - joined.cpu_seconds) * 1000 / nodes);
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
  _exit(fleet.lost == 0 ? 0 : 1);  // does not close 10,000 streams one by one
}

}  // namespace
}  // namespace muster::rendezvous

int main(int argc, char** argv) {
  muster::rendezvous::Settings settings;
  for (int i = 1; i < argc; ++i) {
    std::string_view flag = argv[i];
    if (flag == "--json") {
      settings.json = true;
    } else if (i + 1 < argc && flag == "--nodes") {
      settings.nodes = std::atoi(argv[++i]);
    } else if (i + 1 < argc && flag == "--idle") {
      settings.idle_s = std::atoi(argv[++i]);
    } else if (i + 1 < argc && flag == "--per-connection") {
      settings.per_connection = std::atoi(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: rendezvous_load [--nodes N] [--per-connection N] [--idle SECONDS] [--json]\n");
      return 64;
    }
  }
  if (settings.nodes < 1 || settings.per_connection < 1) return 64;
  return muster::rendezvous::Run(settings);
}
