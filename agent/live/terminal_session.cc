// SPDX-License-Identifier: Apache-2.0
#include "agent/live/terminal_session.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <cerrno>
#include <csignal>

#include "base/attach.h"
#include "base/descriptors.h"
#include "base/text.h"

namespace muster::agent {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// The alternate screen, without a cursor; lines that are too long are cut, not wrapped.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr Size kUsualSize{.rows = 24, .columns = 80};
constexpr size_t kMostRows = 500, kMostColumns = 1000;
constexpr Duration kLeaveLimit = std::chrono::seconds(1);
constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// For the handler of crashes, which has no other way to the terminal.
struct CrashGuard {
  volatile std::sig_atomic_t terminal = -1;
  termios before{};
  std::array<struct sigaction, std::size(kCrashes)> handlers{};
};
CrashGuard crash_guard;

// Gives the terminal back. The handler before this one stands again: a fault happens again when this one returns, and a
// signal that was sent is sent again.
void OnCrash(int signal, siginfo_t* facts, void*) {
  const int terminal = crash_guard.terminal;
  if (terminal >= 0) {
    [[maybe_unused]] const ssize_t ignored = write(terminal, kLeave.data(), kLeave.size());
    tcsetattr(terminal, TCSANOW, &crash_guard.before);
  }
  for (size_t at = 0; at < std::size(kCrashes); ++at) sigaction(kCrashes[at], &crash_guard.handlers[at], nullptr);
  const bool sent = facts->si_code <= 0;
  if (sent) raise(signal);
}

void GuardAgainstCrashes(int terminal, const termios& before) {
  crash_guard.before = before;
  crash_guard.terminal = terminal;
  struct sigaction action {};
  action.sa_sigaction = OnCrash;
  action.sa_flags = SA_SIGINFO;
  for (size_t at = 0; at < std::size(kCrashes); ++at) sigaction(kCrashes[at], &action, &crash_guard.handlers[at]);
}

void LetGoOfCrashes() {
  if (crash_guard.terminal < 0) return;
  crash_guard.terminal = -1;
  for (size_t at = 0; at < std::size(kCrashes); ++at) sigaction(kCrashes[at], &crash_guard.handlers[at], nullptr);
}

termios Raw(termios terminal) {
  terminal.c_iflag &= ~static_cast<tcflag_t>(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
  terminal.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | IEXTEN | ISIG);
  terminal.c_cc[VMIN] = 1;
  terminal.c_cc[VTIME] = 0;
  return terminal;
}

}  // namespace

bool IsFullTerminal(const Environment& environment) {
  const std::string term = environment.NonBlank("TERM").value_or("dumb");
  return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && term != "dumb";
}

Screen::Options ScreenOptionsFor(const Environment& environment) {
  Screen::Options options{.colours = environment.Get("NO_COLOR").value_or("").empty()};
  if (const auto locale = environment.FirstOf("LC_ALL LC_CTYPE LANG")) {
    const std::string name = Lower(locale->value);
    options.ascii = name.find("utf-8") == std::string::npos && name.find("utf8") == std::string::npos;
  }
  return options;
}

class TerminalSession::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, Events events)
      : events_(std::move(events)),
        terminal_(loop),
        ends_(loop, SIGTERM, SIGINT, SIGHUP),
        suspends_(loop, SIGTSTP),
        pictures_(loop, SIGWINCH, SIGCONT) {}

  Status Begin() {
    // Opened again: the flags of the descriptor that the shell shares stay as they are.
    Descriptor fresh(open("/proc/self/fd/0", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    if (!fresh.ok()) return ErrnoStatus(errno, "cannot open the terminal");
    if (tcgetattr(fresh.get(), &before_) != 0) return ErrnoStatus(errno, "cannot read the terminal's settings");
    MUSTER_RETURN_IF_ERROR(Attach(terminal_, std::move(fresh), "epoll"));
    error_code ignored;
    ends_.add(SIGQUIT, ignored);
    Enter();
    AwaitEnd();
    AwaitSuspension();
    AwaitLostPicture();
    Read();
    return absl::OkStatus();
  }

  void Drop() {
    events_ = {};
    Leave();
    error_code ignored;
    for (asio::signal_set* signals : {&ends_, &suspends_, &pictures_}) signals->cancel(ignored);
    terminal_.close(ignored);
  }

  Size size() const {
    winsize told{};
    if (ioctl(descriptor(), TIOCGWINSZ, &told) != 0 || told.ws_row == 0 || told.ws_col == 0) return kUsualSize;
    return {.rows = std::min<size_t>(told.ws_row, kMostRows), .columns = std::min<size_t>(told.ws_col, kMostColumns)};
  }

  bool away() const { return away_; }

  void Write(std::string bytes) {
    out_ = std::move(bytes);
    sent_ = 0;
    Send();
  }

 private:
  using Terminal = asio::posix::stream_descriptor;

  int descriptor() const { return const_cast<Terminal&>(terminal_).native_handle(); }

  // A terminal that is slow, or stopped, is waited for a short time.
  void WriteNow(std::string_view bytes) {
    const TimePoint deadline = MonotonicClock::now() + kLeaveLimit;
    while (!bytes.empty() && ReadyBy(descriptor(), POLLOUT, deadline)) {
      const ssize_t wrote = write(descriptor(), bytes.data(), bytes.size());
      if (wrote < 0 && errno != EINTR && errno != EAGAIN) return;
      if (wrote > 0) bytes.remove_prefix(static_cast<size_t>(wrote));
    }
  }

  void Enter() {
    GuardAgainstCrashes(descriptor(), before_);
    const termios raw = Raw(before_);
    tcsetattr(descriptor(), TCSANOW, &raw);
    WriteNow(kEnter);
  }

  void Leave() {
    WriteNow(kLeave);
    tcsetattr(descriptor(), TCSANOW, &before_);
    LetGoOfCrashes();
  }

  void End(int signal) {
    if (events_.ends) events_.ends(signal);
  }

  void LosePicture() {
    if (events_.lost_picture) events_.lost_picture();
  }

  void AwaitEnd() {
    ends_.async_wait([self = shared_from_this()](error_code error, int signal) {
      if (error) return;
      self->AwaitEnd();
      self->End(signal);
    });
  }

  void AwaitSuspension() {
    suspends_.async_wait([self = shared_from_this()](error_code error, int) {
      if (error) return;
      self->AwaitSuspension();
      self->Leave();
      self->away_ = true;
      kill(getpid(), SIGSTOP);
    });
  }

  void AwaitLostPicture() {
    pictures_.async_wait([self = shared_from_this()](error_code error, int signal) {
      if (error) return;
      self->AwaitLostPicture();
      if (signal == SIGCONT) {  // a shell has had the terminal
        LetGoOfCrashes();
        self->Enter();
        self->away_ = false;
      }
      self->LosePicture();
    });
  }

  void Send() {
    while (sent_ < out_.size()) {
      const ssize_t wrote = write(descriptor(), out_.data() + sent_, out_.size() - sent_);
      if (wrote > 0) sent_ += static_cast<size_t>(wrote);
      if (wrote >= 0 || errno == EINTR) continue;
      if (errno != EAGAIN) return End(SIGHUP);
      terminal_.async_wait(Terminal::wait_write, [self = shared_from_this()](error_code error) {
        if (!error) self->Send();
      });
      return;
    }
    if (events_.written) events_.written();
  }

  void Read() {
    terminal_.async_wait(Terminal::wait_read, [self = shared_from_this()](error_code error) {
      if (error || !self->events_.typed) return;
      std::array<char, 1024> bytes;
      const ssize_t got = read(self->descriptor(), bytes.data(), bytes.size());
      const bool later = got < 0 && (errno == EINTR || errno == EAGAIN);
      if (got <= 0 && !later) return self->End(SIGHUP);
      if (got > 0) self->events_.typed({bytes.data(), static_cast<size_t>(got)});
      self->Read();
    });
  }

  Events events_;
  Terminal terminal_;
  asio::signal_set ends_, suspends_, pictures_;
  termios before_{};
  bool away_ = false;
  std::string out_;  // of the last Write()
  size_t sent_ = 0;
};

StatusOr<std::unique_ptr<TerminalSession>> TerminalSession::Begin(asio::io_context& loop, Events events) {
  auto impl = std::make_shared<Impl>(loop, std::move(events));
  MUSTER_RETURN_IF_ERROR(impl->Begin());
  return std::unique_ptr<TerminalSession>(new TerminalSession(std::move(impl)));
}

TerminalSession::TerminalSession(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
TerminalSession::~TerminalSession() { impl_->Drop(); }

Size TerminalSession::size() const { return impl_->size(); }
bool TerminalSession::away() const { return impl_->away(); }
void TerminalSession::Write(std::string bytes) { impl_->Write(std::move(bytes)); }
void TerminalSession::Suspend() { kill(0, SIGTSTP); }

}  // namespace muster::agent
