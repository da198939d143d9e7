// SPDX-License-Identifier: Apache-2.0
#include "rsh/remote_process.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <csignal>
#include <deque>
#include <optional>

#include "base/attach.h"
#include "base/descriptors.h"
#include "base/text.h"
#include "launcher/worker_group.h"

namespace muster::rsh {

namespace asio = boost::asio;
using boost::system::error_code;
using Pipe = asio::posix::stream_descriptor;

namespace {

constexpr size_t kGathered = 64;  // pieces of input in one write

// The pipe of one stream of the command. `ours` does not block; `theirs`, the command's end, does, as programs expect.
struct Ends {
  Descriptor ours;
  Descriptor theirs;
};

StatusOr<Ends> MakeStream(bool for_input) {
  MUSTER_ASSIGN_OR_RETURN(PipeEnds pipe, MakePipe());
  WidenPipe(pipe.reading.get(), kPipeBytes);
  if (for_input) std::swap(pipe.reading, pipe.writing);
  Ends made{std::move(pipe.reading), std::move(pipe.writing)};
  fcntl(made.ours.get(), F_SETFL, O_NONBLOCK);
  return made;
}

}  // namespace

class RemoteProcess::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, launcher::Reaper& reaper, launcher::Console& console, RemoteProcessEvents events)
      : loop_(loop),
        reaper_(reaper),
        console_(console),
        events_(std::move(events)),
        in_(loop),
        out_{Pipe(loop)},
        err_{Pipe(loop)} {}

  StatusOr<int64_t> Start(const std::string& command, std::vector<std::string> environment);
  void Continue();
  void Input(Bytes bytes);
  void EndInput();
  void Signal(int signal) {
    if (group_) group_->Signal(signal);
  }
  void Stop(int signal, Duration grace) {
    if (group_) group_->Stop(signal, grace);
  }
  void Detach();
  void Close();

 private:
  struct Stream {
    Pipe pipe;
    bool waiting = false;        // for bytes to read
    bool ready = false;          // there may be bytes to read
    std::optional<size_t> left;  // once the command has ended: bytes of its output that are still to be read
  };

  void Watch(Stream& stream);
  void Read();
  bool ReadOne(Stream& stream);
  bool Drained() const { return !out_.pipe.is_open() && !err_.pipe.is_open(); }
  void Write();
  void WatchInput();
  void CloseInput();
  void Ended(const launcher::ExitRecord& record);
  void SayEnded();
  void Gone();

  asio::io_context& loop_;
  launcher::Reaper& reaper_;
  launcher::Console& console_;
  RemoteProcessEvents events_;
  std::unique_ptr<launcher::WorkerGroup> group_;
  std::shared_ptr<void> sweeps_;
  Pipe in_;
  Stream out_;
  Stream err_;
  bool room_ = true;  // the caller takes output
  bool err_next_ = false;
  std::deque<grpc::Slice> input_;
  size_t first_written_ = 0;  // of input_.front()
  bool input_ended_ = false;
  bool input_waiting_ = false;
  std::optional<launcher::ExitRecord> record_;
  bool said_ended_ = false;
};

StatusOr<int64_t> RemoteProcess::Impl::Start(const std::string& command, std::vector<std::string> environment) {
  MUSTER_ASSIGN_OR_RETURN(Ends in, MakeStream(true));
  MUSTER_ASSIGN_OR_RETURN(Ends out, MakeStream(false));
  MUSTER_ASSIGN_OR_RETURN(Ends err, MakeStream(false));
  constexpr std::string_view kPipe = "cannot wait for a pipe of a command";
  // Before the command starts: if one of these fails, there is no process to end.
  MUSTER_RETURN_IF_ERROR(Attach(in_, std::move(in.ours), kPipe));
  MUSTER_RETURN_IF_ERROR(Attach(out_.pipe, std::move(out.ours), kPipe));
  MUSTER_RETURN_IF_ERROR(Attach(err_.pipe, std::move(err.ours), kPipe));
  launcher::WorkerGroupEvents events;
  events.worker_exited = [this](const launcher::ExitRecord& record) { Ended(record); };
  events.all_gone = [this] { Gone(); };
  group_ = std::make_unique<launcher::WorkerGroup>(loop_, reaper_, console_, std::move(events));
  launcher::WorkerSpec spec;
  spec.argv = {"/bin/sh", "-c", command};
  spec.environment = std::move(environment);
  spec.in = in.theirs.get();
  spec.out = out.theirs.get();
  spec.err = err.theirs.get();
  MUSTER_RETURN_IF_ERROR(group_->Start({spec}));
  // After Stop the group reports only the end of all its processes; the caller waits for the command alone.
  sweeps_ = reaper_.AfterSweep([this] {
    if (!record_ && !group_->records().empty()) Ended(group_->records().front());
  });
  Watch(out_);
  Watch(err_);
  return group_->pids().front();
}

void RemoteProcess::Impl::Watch(Stream& stream) {
  if (stream.waiting || stream.ready || !stream.pipe.is_open()) return;
  stream.waiting = true;
  stream.pipe.async_wait(Pipe::wait_read, [weak = weak_from_this(), &stream](error_code error) {
    auto self = weak.lock();
    if (!self || error) return;
    stream.waiting = false;
    self->out_.ready = self->err_.ready = true;  // the other stream may have older output
    self->Read();
  });
}

void RemoteProcess::Impl::Continue() {
  room_ = true;
  Read();
}

// Reads at most one chunk, from stdout and stderr in turns.
void RemoteProcess::Impl::Read() {
  for (int turn = 0; turn < 2 && room_; ++turn) {
    err_next_ = !err_next_;
    Stream& stream = err_next_ ? err_ : out_;
    while (stream.ready && stream.pipe.is_open() && room_ && !ReadOne(stream)) {
    }
  }
  Watch(out_);
  Watch(err_);
  if (record_ && Drained()) SayEnded();
}

// True: there is nothing more to do with this stream for now.
bool RemoteProcess::Impl::ReadOne(Stream& stream) {
  const size_t most = std::min(kChunk, stream.left.value_or(kChunk));
  if (most == 0) {
    stream.pipe.close();
    stream.ready = false;
    return true;
  }
  grpc::Slice buffer(most);
  ssize_t got = read(stream.pipe.native_handle(), const_cast<uint8_t*>(buffer.begin()), most);
  if (got < 0 && errno == EINTR) return false;
  if (got < 0 && errno == EAGAIN && !stream.left) {
    stream.ready = false;
    return true;
  }
  if (got <= 0) {
    stream.pipe.close();
    stream.ready = false;
    return true;
  }
  if (stream.left) *stream.left -= static_cast<size_t>(got);
  room_ = false;
  const auto length = static_cast<size_t>(got);
  if (events_.output) events_.output(&stream == &err_, length == most ? std::move(buffer) : buffer.sub(0, length));
  return true;
}

void RemoteProcess::Impl::Input(Bytes bytes) {
  size_t dropped = 0;
  for (grpc::Slice& slice : bytes) {
    if (!in_.is_open()) {
      dropped += slice.size();
    } else if (slice.size() > 0) {
      input_.push_back(std::move(slice));
    }
  }
  if (dropped > 0 && events_.taken) events_.taken(dropped);
  Write();
}

void RemoteProcess::Impl::EndInput() {
  input_ended_ = true;
  Write();
}

void RemoteProcess::Impl::Write() {
  size_t taken = 0;
  while (!input_.empty() && in_.is_open() && !input_waiting_) {
    std::array<iovec, kGathered> pieces;
    const size_t count = std::min(input_.size(), pieces.size());
    for (size_t i = 0; i < count; ++i) {
      const size_t written = i == 0 ? first_written_ : 0;
      pieces[i] = {const_cast<uint8_t*>(input_[i].begin()) + written, input_[i].size() - written};
    }
    ssize_t put = writev(in_.native_handle(), pieces.data(), static_cast<int>(count));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) {
      WatchInput();
      break;
    }
    if (put < 0) {  // the command has closed its stdin: the rest is dropped
      for (const grpc::Slice& slice : input_) taken += slice.size();
      taken -= first_written_;
      CloseInput();
      break;
    }
    taken += static_cast<size_t>(put);
    first_written_ += static_cast<size_t>(put);
    while (!input_.empty() && first_written_ >= input_.front().size()) {
      first_written_ -= input_.front().size();
      input_.pop_front();
    }
  }
  if (input_ended_ && input_.empty()) CloseInput();
  if (taken > 0 && events_.taken) events_.taken(taken);
}

void RemoteProcess::Impl::WatchInput() {
  input_waiting_ = true;
  in_.async_wait(Pipe::wait_write, [weak = weak_from_this()](error_code error) {
    auto self = weak.lock();
    if (!self || error) return;
    self->input_waiting_ = false;
    self->Write();
  });
}

void RemoteProcess::Impl::CloseInput() {
  input_.clear();
  first_written_ = 0;
  error_code ignored;
  in_.close(ignored);
}

void RemoteProcess::Impl::Ended(const launcher::ExitRecord& record) {
  if (record_) return;
  record_ = record;
  CloseInput();
  for (Stream* stream : {&out_, &err_}) {
    int there = 0;
    if (stream->pipe.is_open()) ioctl(stream->pipe.native_handle(), FIONREAD, &there);
    stream->left = static_cast<size_t>(there);
    stream->ready = stream->pipe.is_open();
  }
  Read();
}

void RemoteProcess::Impl::SayEnded() {
  if (std::exchange(said_ended_, true)) return;
  if (events_.ended) events_.ended(*record_);
}

void RemoteProcess::Impl::Detach() {
  events_.output = nullptr;
  events_.taken = nullptr;
  events_.ended = nullptr;
  CloseInput();
  error_code ignored;
  out_.pipe.close(ignored);
  err_.pipe.close(ignored);
}

void RemoteProcess::Impl::Gone() {
  if (!record_) {  // the command ended after Stop, or not even SIGKILL has ended it
    const auto& records = group_->records();
    Ended(records.empty() ? launcher::ExitRecord{.exit_code = 128 + SIGKILL, .signal = SIGKILL} : records.front());
  }
  // Posted: `gone` must come after `ended`, and its callback may destroy this object.
  asio::post(loop_, [self = shared_from_this()] {
    if (self->events_.gone) self->events_.gone();
  });
}

void RemoteProcess::Impl::Close() {
  events_ = {};
  error_code ignored;
  for (Pipe* pipe : {&in_, &out_.pipe, &err_.pipe}) pipe->close(ignored);
  sweeps_.reset();
  group_.reset();
}

RemoteProcess::RemoteProcess(asio::io_context& loop, launcher::Reaper& reaper, launcher::Console& console,
                             RemoteProcessEvents events)
    : impl_(std::make_shared<Impl>(loop, reaper, console, std::move(events))) {}
RemoteProcess::~RemoteProcess() { impl_->Close(); }
StatusOr<int64_t> RemoteProcess::Start(const std::string& command, std::vector<std::string> environment) {
  return impl_->Start(command, std::move(environment));
}
void RemoteProcess::Continue() { impl_->Continue(); }
void RemoteProcess::Input(Bytes bytes) { impl_->Input(std::move(bytes)); }
void RemoteProcess::EndInput() { impl_->EndInput(); }
void RemoteProcess::Signal(int signal) { impl_->Signal(signal); }
void RemoteProcess::Stop(int signal, Duration grace) { impl_->Stop(signal, grace); }
void RemoteProcess::Detach() { impl_->Detach(); }

}  // namespace muster::rsh
