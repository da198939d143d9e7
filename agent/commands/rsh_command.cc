// SPDX-License-Identifier: Apache-2.0
// `muster rsh HOST COMMAND`: takes ssh's place in an MPI job. Runs the command in the pod HOST, whose agent is `muster
// exec --serve-rsh`, carries its streams and signals, and ends with its exit code. On this machine, if no such agent
// serves here, it becomes the command.
#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>

#include "agent/commands/commands.h"
#include "agent/flags/flag_usage.h"
#include "agent/flags/rsh_place.h"
#include "agent/flags/service_links.h"
#include "agent/mpi_launcher.h"
#include "agent/rsh_here.h"
#include "base/descriptors.h"
#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/host_names.h"
#include "base/log.h"
#include "base/not_yet.h"
#include "base/print.h"
#include "base/text.h"
#include "base/version.h"
#include "launcher/console.h"
#include "net/grpc_channel.h"
#include "rsh/input_pump.h"
#include "rsh/rsh_arguments.h"
#include "rsh/session.h"

namespace muster::agent {
namespace {

using launcher::Console;

constexpr char kDescription[] =
    "Runs the command by `sh -c` in the pod whose agent serves `muster exec --serve-rsh`: the remote shell of mpirun,\n"
    "without sshd, keys or root.";
constexpr char kNotes[] =
    "The token and the certificates come from MUSTER_TOKEN_FILE, MUSTER_TLS_CERT, MUSTER_TLS_KEY and MUSTER_TLS_CA.\n"
    "Ends with the command's code; with 200 if the pod was not reached in time, 78 if it refused the token or the\n"
    "certificate, 202 if the connection was lost.";
constexpr std::chrono::milliseconds kNeverDrop = std::chrono::hours(24 * 365);

// A standard stream, or /dev/null if it was closed when this process started: gRPC opens a descriptor before main,
// which then has the stream's number. A descriptor that was inherited through exec has no close-on-exec flag.
int Standard(int fd) {
  int flags = fcntl(fd, F_GETFD);
  return flags != -1 && (flags & FD_CLOEXEC) == 0 ? fd : open("/dev/null", O_RDWR | O_CLOEXEC);
}

void Say(const std::string& text) { PrintTo(stderr, "muster rsh: {}\n", text); }

// Carries stdin, stdout, stderr and signals until the command has ended.
class Terminal {
 public:
  explicit Terminal(rsh::Session::Options options, bool no_stdin)
      : no_stdin_(no_stdin), session_options_(std::move(options)) {}

  [[noreturn]] void Run();

 private:
  std::string About(const std::string& what) const;
  void Output(bool err, const rsh::Bytes& bytes);
  void Started();
  void AwaitSignal();
  void OnSignal(int signal);
  void Ended(const rsh::Ended& ended);

  boost::asio::io_context loop_{1};
  net::Resolver resolver_{loop_};
  std::unique_ptr<net::GrpcQueue> queue_ = net::MakeCallQueue(loop_);
  // There is room only if the queue is empty: output that the reader does not take stays with the command.
  Console console_{
      loop_,
      {.out = Standard(STDOUT_FILENO), .err = Standard(STDERR_FILENO), .queue_bytes = 2, .stall_limit = kNeverDrop}};
  boost::asio::signal_set signals_{loop_, SIGHUP, SIGINT, SIGQUIT};
  const bool no_stdin_;
  rsh::Session::Options session_options_;
  std::unique_ptr<rsh::Session> session_;
  std::unique_ptr<rsh::InputPump> input_;
  bool started_ = false;
  bool asked_to_go_ = false;
  int code_ = 0;
};

void Terminal::Run() {
  for (int signal : {SIGTERM, SIGUSR1, SIGUSR2}) signals_.add(signal);
  AwaitSignal();
  WidenPipe(STDOUT_FILENO, rsh::kPipeBytes);
  rsh::Session::Events events;
  events.waiting = [this](const std::string& obstacle) {
    const std::string& address = session_options_.address;
    const double limit = std::chrono::duration<double>(session_options_.timeout).count();
    Say(fmt::format("waiting for {}: {} (up to {:g} s)", address, NotYet(obstacle, address), limit));
  };
  events.started = [this] { Started(); };
  events.output = [this](bool err, const rsh::Bytes& bytes) { Output(err, bytes); };
  events.room = [this] {
    if (input_) input_->Continue();
  };
  events.ended = [this](const rsh::Ended& ended) { Ended(ended); };
  session_ = std::make_unique<rsh::Session>(loop_, *queue_, resolver_, session_options_, std::move(events));
  loop_.run();
  // gRPC takes ten milliseconds to end its threads, so this process ends by _exit. All output is written by now.
  std::fflush(nullptr);
  _exit(code_);
}

// `what` with the address in front, once: an error of a name that is not known begins with the address already.
std::string Terminal::About(const std::string& what) const {
  const std::string place = session_options_.address + ": ";
  return what.starts_with(place) ? what : place + what;
}

void Terminal::Started() {
  started_ = true;
  if (no_stdin_) return session_->EndInput();
  rsh::InputPump::Events events;
  events.room = [this] { return session_->InputRoom(); };
  events.bytes = [this](grpc::Slice bytes) { session_->Write(std::move(bytes)); };
  events.ended = [this] { session_->EndInput(); };
  input_ = std::make_unique<rsh::InputPump>(loop_, Standard(STDIN_FILENO), std::move(events));
}

void Terminal::Output(bool err, const rsh::Bytes& bytes) {
  const Console::Stream stream = err ? Console::Stream::kErr : Console::Stream::kOut;
  console_.Write(stream, net::Joined(bytes), /*starts_line=*/false);  // unchanged; one text takes one write
  console_.WhenRoom(stream, [this] { session_->Continue(); });
}

void Terminal::AwaitSignal() {
  signals_.async_wait([this](boost::system::error_code error, int signal) {
    if (error) return;
    AwaitSignal();
    OnSignal(signal);
  });
}

// Forwards the signal to a started command. Before that, or at a second signal to end, ends: the pod stops the command.
void Terminal::OnSignal(int signal) {
  const bool go = signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
  if (started_ && !(go && asked_to_go_)) session_->Signal(signal);
  if (go && (!started_ || asked_to_go_)) {
    code_ = 128 + signal;
    loop_.stop();
  }
  asked_to_go_ = asked_to_go_ || go;
}

void Terminal::Ended(const rsh::Ended& ended) {
  code_ = ended.exit_code;
  if (!ended.reason.empty()) {
    const std::string reason = About(ended.reason);
    // mpirun's daemon answers the pod's signal with a code of its own (orted: 1), which is not a failure of the
    // program.
    const int code = ended.reason == rsh::kPodStopping ? kExitStopped : code_;
    ReportRshFailure(Environment::OfProcess(), {code, reason});  // first: a stderr without a reader may end us
    Say(reason);
  }
  input_.reset();
  console_.WhenRoom(Console::Stream::kOut,
                    [this] { console_.WhenRoom(Console::Stream::kErr, [this] { loop_.stop(); }); });
}

// names, metavar, help, default, variable
constexpr const char* kOptions[][5] = {
    {"-p", "PORT", "port of the remote shell in the pod", "29522", "MUSTER_RSH_PORT"},
    {"-n,-f", "", "read nothing from stdin", "", ""},
    {"--rsh-timeout", "SECONDS", "how long to wait for the pod", "900", "MUSTER_RSH_TIMEOUT"},
    {"-V,--version", "", "print the version and exit", "", ""},
    {"-h,--help", "", "print this help message and exit", "", ""},
};

usage::Command DescribeRsh() {
  usage::Command command;
  command.name = "muster rsh";
  command.description = fmt::format("{}\n\n{}", kDescription, kNotes);
  command.wraps = true;
  for (const auto& [names, metavar, help, fallback, variable] : kOptions) {
    usage::Flag& flag = command.flags.emplace_back();
    for (std::string_view name : Split(names, ',')) flag.names.emplace_back(name);
    flag.metavar = metavar;
    flag.help = help;
    flag.fallback = fallback;
    if (variable[0] != 0) flag.variables.emplace_back(variable);
  }
  for (const char* metavar : {"[user@]HOST", "COMMAND"}) command.operands.emplace_back().metavar = metavar;
  return command;
}

std::string Help() {
  std::string rows;
  for (const usage::Flag& flag : DescribeRsh().flags) rows += HelpRow(flag);
  return fmt::format("usage: muster rsh [ssh's options] [user@]HOST COMMAND [arguments]\n\n{}\n\n{}\n{}\n",
                     kDescription, rows, kNotes);
}

int Refuse(int code, const Status& status) {
  const std::string reason(Message(status));
  ReportRshFailure(Environment::OfProcess(), {code, reason});
  Say(reason);
  return code;
}

}  // namespace

int RshCommand(const Call& call) {
  if (call.description != nullptr) {
    *call.description = DescribeRsh();
    return 0;
  }
  auto command = rsh::ParseRshArguments(call.arguments);
  if (!command.ok()) {
    return Refuse(kExitUsage, WithRemedy(command.status(), "see muster rsh --help"));
  }
  if (command->ask == rsh::RshCommand::Ask::kHelp) {
    PrintTo(stdout, "{}", Help());
    return 0;
  }
  if (command->ask == rsh::RshCommand::Ask::kVersion) {
    PrintTo(stderr, "muster {} rsh protocol {}\n", Version(), kRshProtocol);  // as ssh, on stderr
    return 0;
  }
  const Environment environment = Environment::OfProcess();
  for (const ServiceLink& link : LinksAmongSettings(environment)) Say(Describe(link));
  auto place = ReadRshPlace(environment);
  if (!place.ok()) return Refuse(kExitUsage, place.status());
  const int port = command->port.value_or(place->port);
  if (RunsHere(command->host, port)) return RunHere(command->command, command->no_stdin);
  auto credentials = net::ReadCredentials(place->credentials);
  if (!credentials.ok()) return Refuse(kExitBadConfiguration, credentials.status());
  rsh::Session::Options options;
  options.address = JoinHostPort(command->host, port);
  options.credentials = *std::move(credentials);
  options.timeout = command->timeout.value_or(place->timeout);
  options.command = std::move(command->command);
  options.caller = fmt::format("{}, pid {}", HostName(), getpid());
  Terminal(std::move(options), command->no_stdin).Run();
}

}  // namespace muster::agent
