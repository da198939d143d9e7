// SPDX-License-Identifier: Apache-2.0
#include "agent/gpu_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <csignal>
#include <utility>

#include "base/attach.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "launcher/process.h"

namespace muster::agent {
namespace {

constexpr size_t kLongestLine = 4096;

}  // namespace

class GpuWatch::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, launcher::Reaper& reaper) : reaper_(reaper), pipe_(loop) {}

  void Begin() {
    if (pid_ != 0 || failed_) return;
    if (const Status started = Start(); !started.ok()) {
      failed_ = true;
      log::Debug(fmt::format("the GPUs are not watched: {}", Message(started)));
    }
  }

  void End() {
    if (pid_ != 0) kill(-pid_, SIGKILL);
    boost::system::error_code ignored;
    pipe_.close(ignored);
    gpus_.clear();
    line_.clear();
  }

  const std::map<int, GpuLine>& gpus() const { return gpus_; }

 private:
  Status Start() {
    MUSTER_ASSIGN_OR_RETURN(PipeEnds ends, MakePipe());
    const Descriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
    launcher::ProcessSpec spec;
    spec.argv = {"nvidia-smi", "--query-gpu=index,uuid,utilization.gpu,memory.used", "--format=csv,noheader,nounits",
                 "--loop=1"};
    spec.environment = Environment::OfProcess().entries();
    spec.in = spec.err = nothing.get();
    spec.out = ends.writing.get();
    MUSTER_RETURN_IF_ERROR(Attach(pipe_, std::move(ends.reading), "watching the output of nvidia-smi"));
    MUSTER_ASSIGN_OR_RETURN(pid_, launcher::StartProcess(spec));
    reaper_.Watch(pid_, [weak = weak_from_this()](const launcher::Reaped& reaped) {
      auto self = weak.lock();
      if (!self || self->pid_ != reaped.pid) return;
      self->pid_ = 0;
      self->gpus_.clear();
    });
    Read();
    return absl::OkStatus();
  }

  void Read() {
    pipe_.async_read_some(boost::asio::buffer(buffer_),
                          [weak = weak_from_this()](boost::system::error_code error, size_t size) {
                            auto self = weak.lock();
                            if (!self || error) return;
                            self->Take({self->buffer_.data(), size});
                            self->Read();
                          });
  }

  void Take(std::string_view bytes) {
    for (size_t end; (end = bytes.find('\n')) != std::string_view::npos; bytes.remove_prefix(end + 1)) {
      line_ += bytes.substr(0, end);
      if (const auto gpu = ParseGpuLine(line_)) gpus_[gpu->index] = *gpu;
      line_.clear();
    }
    line_ += bytes.substr(0, kLongestLine - std::min(line_.size(), kLongestLine));
  }

  launcher::Reaper& reaper_;
  boost::asio::posix::stream_descriptor pipe_;
  std::array<char, 4096> buffer_;
  std::string line_;  // that has not ended
  pid_t pid_ = 0;     // 0: it does not run
  bool failed_ = false;
  std::map<int, GpuLine> gpus_;
};

GpuWatch::GpuWatch(boost::asio::io_context& loop, launcher::Reaper& reaper)
    : impl_(std::make_shared<Impl>(loop, reaper)) {}
GpuWatch::~GpuWatch() { impl_->End(); }
void GpuWatch::Begin() { impl_->Begin(); }
void GpuWatch::End() { impl_->End(); }
std::map<int, GpuLine> GpuWatch::gpus() const { return impl_->gpus(); }

}  // namespace muster::agent
