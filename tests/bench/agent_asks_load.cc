// SPDX-License-Identifier: Apache-2.0
// Memory and CPU of the controller's requests to the agents of N jobs: agent_asks_load [N]
//
// A forked process is the agent of every job, each at an address of its own in 127.0.0.0/8. It answers the first
// request of a job, and lets the next one wait. Prints one line of JSON: bytes of memory for each waiting request, and
// seconds of CPU until all of them wait.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>

#include "base/text.h"
#include "controller/kube/jobs/agent_asks.h"

namespace muster::controller {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr char kAnswer[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 62\r\n\r\n"
    R"({"restart_count":0,"source":"coordinator","version":"abcdef"} )";

// Each request that waits is one byte in `waiting`.
struct Connection : std::enable_shared_from_this<Connection> {
  Connection(tcp::socket its, int pipe) : socket(std::move(its)), waiting(pipe) {}
  void Read() {
    socket.async_read_some(boost::asio::buffer(bytes), [self = shared_from_this()](error_code error, size_t size) {
      if (error) return;
      const std::string_view request(self->bytes.data(), size);
      if (request.find("?after=") != std::string_view::npos) {
        if (write(self->waiting, "w", 1) != 1) abort();
        return self->Read();
      }
      boost::asio::async_write(self->socket, boost::asio::buffer(kAnswer, sizeof kAnswer - 1),
                               [self](error_code failed, size_t) {
                                 if (!failed) self->Read();
                               });
    });
  }
  tcp::socket socket;
  const int waiting;
  std::array<char, 1024> bytes;
};

void Accept(tcp::acceptor& acceptor, int waiting) {
  acceptor.async_accept([&acceptor, waiting](error_code error, tcp::socket socket) {
    if (!error) std::make_shared<Connection>(std::move(socket), waiting)->Read();
    Accept(acceptor, waiting);
  });
}

size_t Resident() {
  size_t whole = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> whole >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](timeval time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void Measure(size_t jobs, uint16_t port, int waiting) {
  boost::asio::io_context loop;
  boost::asio::posix::stream_descriptor pipe(loop, waiting);
  AgentAsks asks(loop, [](const std::string&, const std::optional<AgentsSaid>&) {});
  const auto ask_until_all_wait = [&](size_t first, size_t end) {
    for (size_t job = first; job < end; ++job) {
      const std::string address = fmt::format("127.{}.{}.1", 1 + job / 256, job % 256);
      asks.Ask(fmt::format("ns/job-{}", job), {{"uid", fmt::format("http://{}:{}/status", address, port)}});
    }
    std::string bytes(end - first, '\0');
    bool done = false;
    boost::asio::async_read(pipe, boost::asio::buffer(bytes), [&done](error_code, size_t) { done = true; });
    while (!done) loop.run_one();
  };
  ask_until_all_wait(0, 1);  // takes what is needed once
  const size_t before = Resident();
  const double spent = CpuSeconds();
  ask_until_all_wait(1, jobs + 1);
  fmt::print("{{\"jobs\": {}, \"bytes_a_job\": {}, \"cpu_s\": {:.3f}}}\n", jobs, (Resident() - before) / jobs,
             CpuSeconds() - spent);
}

}  // namespace
}  // namespace muster::controller

int main(int argc, char** argv) {
  using namespace muster;
  const size_t jobs = argc > 1 ? static_cast<size_t>(ParseInt(argv[1]).value_or(2000)) : 2000;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  boost::asio::io_context loop;
  boost::asio::ip::tcp::acceptor acceptor(loop, {boost::asio::ip::address_v4::any(), 0});
  int waiting[2];
  if (pipe(waiting) != 0) return 1;
  const pid_t agents = fork();
  if (agents == 0) {
    loop.notify_fork(boost::asio::execution_context::fork_child);
    controller::Accept(acceptor, waiting[1]);
    loop.run();
    _exit(0);
  }
  controller::Measure(jobs, acceptor.local_endpoint().port(), waiting[0]);
  kill(agents, SIGKILL);
  waitpid(agents, nullptr, 0);
  return 0;
}
