// SPDX-License-Identifier: Apache-2.0
#include "agent/standby/standby_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <string>
#include <string_view>

#include "base/attach.h"
#include "base/log.h"
#include "base/text.h"

namespace muster::agent::standby {

class StandbyOutput::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, int local_rank) : local_rank_(local_rank), pipe_(loop) {}

  Status Open() {
    MUSTER_ASSIGN_OR_RETURN(PipeEnds ends, MakePipe());
    writing_ = std::move(ends.writing);
    MUSTER_RETURN_IF_ERROR(Attach(pipe_, std::move(ends.reading), "watching the output of a standby worker"));
    const bool set = fcntl(pipe_.native_handle(), F_SETFL, O_NONBLOCK) != -1;
    return set ? absl::OkStatus() : ErrnoStatus(errno, "setting up the output of a standby worker");
  }

  void Close() {
    boost::system::error_code ignored;
    pipe_.close(ignored);
  }

  int writing() const { return writing_.get(); }
  void Started() {
    writing_.Close();
    Wait();
  }

 private:
  void Wait() {
    pipe_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                     [weak = weak_from_this()](boost::system::error_code failed) {
                       if (auto self = weak.lock(); self && !failed) self->OnReadable();
                     });
  }

  void OnReadable() {
    std::array<char, 4096> piece;
    const ssize_t got = read(pipe_.native_handle(), piece.data(), piece.size());
    if (got > 0) Tell(std::string_view(piece.data(), static_cast<size_t>(got)));
    if (got > 0 || (got == -1 && (errno == EAGAIN || errno == EINTR))) Wait();
  }

  // At once, whether the last line has ended or not: an import that hangs may have asked something.
  void Tell(std::string_view piece) const {
    for (const std::string_view line : Split(piece, '\n')) {
      if (Strip(line).empty()) continue;
      log::Debug("a standby worker printed",
                 {{"local_rank", std::to_string(local_rank_)}, {"text", std::string(line)}});
    }
  }

  const int local_rank_;
  boost::asio::posix::stream_descriptor pipe_;
  Descriptor writing_;
};

StatusOr<std::unique_ptr<StandbyOutput>> StandbyOutput::Open(boost::asio::io_context& loop, int local_rank) {
  auto impl = std::make_shared<Impl>(loop, local_rank);
  MUSTER_RETURN_IF_ERROR(impl->Open());
  return std::unique_ptr<StandbyOutput>(new StandbyOutput(std::move(impl)));
}
StandbyOutput::~StandbyOutput() { impl_->Close(); }
int StandbyOutput::writing() const { return impl_->writing(); }
void StandbyOutput::Started() { impl_->Started(); }

}  // namespace muster::agent::standby
