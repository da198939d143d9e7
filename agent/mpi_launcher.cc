// SPDX-License-Identifier: Apache-2.0
#include "agent/mpi_launcher.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

#include "agent/flags/rsh_place.h"
#include "agent/mpi_host_files.h"
#include "base/attach.h"
#include "base/descriptors.h"
#include "base/host_names.h"
#include "base/log.h"
#include "base/text.h"
#include "base/utf8.h"
#include "net/grpc_channel.h"
#include "rsh/workers.h"

namespace muster::agent {

namespace asio = boost::asio;

namespace {

constexpr std::string_view kReportVariable = "MUSTER_RSH_REPORT";
constexpr size_t kLongestLine = 2048;  // less than PIPE_BUF: written whole or not at all
constexpr auto kHearLimit = std::chrono::seconds(10);

}  // namespace

std::string FormatRshFailure(const RshFailure& failure) {
  std::string reason = failure.reason;
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  return fmt::format("{} {}\n", failure.exit_code, Beginning(reason, kLongestLine));
}

StatusOr<RshFailure> ParseRshFailure(std::string_view line) {
  RshFailure failure;
  const char* end = line.data() + line.size();
  auto [rest, error] = std::from_chars(line.data(), end, failure.exit_code);
  if (error != std::errc() || rest == end || *rest != ' ' || failure.exit_code < 1 || failure.exit_code > 255) {
    return absl::InvalidArgumentError(fmt::format("'{}' is not a report of a remote shell", line.substr(0, 80)));
  }
  failure.reason = std::string(rest + 1, end);
  return failure;
}

void ReportRshFailure(const Environment& environment, const RshFailure& failure) {
  auto path = environment.Get(kReportVariable);
  if (!path || path->empty()) return;
  Descriptor pipe(open(path->c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  std::string line = FormatRshFailure(failure);
  // If the pipe has no reader here (a daemon's shell in another pod), only mpirun's own messages are left.
  if (pipe.ok() && write(pipe.get(), line.data(), line.size()) < 0) return;
}

class MpiLauncher::Impl {
 public:
  Impl(asio::io_context& loop, std::function<void(const RshFailure&)> failed)
      : loop_(loop), failed_(std::move(failed)), reports_(loop), resolver_(loop) {}

  StatusOr<Variables> NewAttempt(const Environment& environment, const std::string& other_folder);
  void End(int exit_code, ExitClass exit_class, const std::string& reason, std::function<void()> done);

 private:
  Status Attend(const Environment& environment);
  Status OpenReports(const std::string& path);
  void AwaitReport();
  void ReadReports();

  asio::io_context& loop_;
  const std::function<void(const RshFailure&)> failed_;
  std::optional<MpiHostFiles> files_;
  asio::posix::stream_descriptor reports_;
  std::string unread_;  // the beginning of a line
  net::Resolver resolver_;
  std::unique_ptr<net::GrpcQueue> queue_;
  std::vector<std::string> addresses_, here_;  // of worker pods; those in here_ name this machine
  std::unique_ptr<rsh::Workers> workers_;
};

StatusOr<Variables> MpiLauncher::Impl::NewAttempt(const Environment& environment, const std::string& other_folder) {
  MUSTER_ASSIGN_OR_RETURN(files_, MpiHostFiles::Make(environment, other_folder));
  MUSTER_ASSIGN_OR_RETURN(Variables variables, MpiVariables(environment, files_->place()));
  if (files_->hosts().empty()) return variables;
  MUSTER_RETURN_IF_ERROR(OpenReports(files_->reports()));
  variables[std::string(kReportVariable)] = files_->reports();
  MUSTER_RETURN_IF_ERROR(Attend(environment));
  return variables;
}

// The launcher holds both ends of the pipe, so that it sees no end of file when a writer closes its end.
Status MpiLauncher::Impl::OpenReports(const std::string& path) {
  boost::system::error_code ignored;
  reports_.close(ignored);
  unread_.clear();
  if (mkfifo(path.c_str(), 0600) != 0) return ErrnoStatus(errno, path);
  Descriptor fifo(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fifo.ok()) return ErrnoStatus(errno, path);
  MUSTER_RETURN_IF_ERROR(Attach(reports_, std::move(fifo), fmt::format("cannot wait for {}", path)));
  AwaitReport();
  return absl::OkStatus();
}

void MpiLauncher::Impl::AwaitReport() {
  reports_.async_wait(asio::posix::descriptor_base::wait_read, [this](boost::system::error_code error) {
    if (error) return;
    ReadReports();
    AwaitReport();
  });
}

void MpiLauncher::Impl::ReadReports() {
  char part[4096];
  ssize_t got = read(reports_.native_handle(), part, sizeof part);
  if (got > 0) unread_.append(part, static_cast<size_t>(got));
  for (size_t end; (end = unread_.find('\n')) != std::string::npos; unread_.erase(0, end + 1)) {
    auto failure = ParseRshFailure(std::string_view(unread_).substr(0, end));
    if (failure.ok()) failed_(*failure);
  }
  if (unread_.size() > 2 * kLongestLine) unread_.clear();  // not written by `muster rsh`
}

Status MpiLauncher::Impl::Attend(const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(RshPlace place, ReadRshPlace(environment));
  const MachineNames machine = ThisMachine();
  std::vector<std::string> addresses, here;
  for (const MpiHost& host : files_->hosts()) {
    (MeansThisMachine(host.name, machine) ? here : addresses).push_back(JoinHostPort(host.name, place.port));
  }
  if (addresses == addresses_ && here == here_ && workers_ != nullptr) return absl::OkStatus();
  rsh::Workers::Options options;
  MUSTER_ASSIGN_OR_RETURN(options.credentials, net::ReadCredentials(place.credentials));
  options.addresses = addresses_ = std::move(addresses);
  options.of_this_machine = here_ = std::move(here);
  options.launcher = machine.host_name;
  rsh::Workers::Events events;
  events.lost = [](const std::string& address, const std::string& detail) {
    log::Warning(fmt::format("the worker {} is gone ({}); waiting for it to come back", address, detail));
  };
  events.refused = [](const std::string& address, const std::string& detail) {
    log::Warning(fmt::format("the worker {} refuses this launcher: {}", address, detail));
  };
  if (queue_ == nullptr) queue_ = net::MakeCallQueue(loop_);
  workers_ = std::make_unique<rsh::Workers>(loop_, *queue_, resolver_, std::move(options), std::move(events));
  return absl::OkStatus();
}

void MpiLauncher::Impl::End(int exit_code, ExitClass exit_class, const std::string& reason,
                            std::function<void()> done) {
  boost::system::error_code ignored;
  reports_.close(ignored);
  files_.reset();
  if (workers_ == nullptr) return asio::post(loop_, std::move(done));
  workers_->SendVerdict({exit_code, reason, exit_class}, kHearLimit,
                        [done = std::move(done)](const std::vector<std::string>& deaf) {
                          for (const std::string& worker : deaf)
                            log::Warning(fmt::format("cannot tell a worker the verdict: {}", worker));
                          done();
                        });
}

MpiLauncher::MpiLauncher(asio::io_context& loop, std::function<void(const RshFailure&)> failed)
    : impl_(std::make_unique<Impl>(loop, std::move(failed))) {}
MpiLauncher::~MpiLauncher() = default;
StatusOr<Variables> MpiLauncher::NewAttempt(const Environment& environment, const std::string& other_folder) {
  return impl_->NewAttempt(environment, other_folder);
}
void MpiLauncher::End(int exit_code, ExitClass exit_class, const std::string& reason, std::function<void()> done) {
  impl_->End(exit_code, exit_class, reason, std::move(done));
}

}  // namespace muster::agent
