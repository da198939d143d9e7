// SPDX-License-Identifier: Apache-2.0
#include "launcher/worker_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <deque>

#include "base/attach.h"
#include "base/descriptors.h"
#include "base/reason_line.h"
#include "base/text.h"
#include "base/utf8.h"
#include "launcher/recent_text.h"

namespace muster::launcher {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr size_t kPiece = 64 << 10;  // one read, and about the longest line on the console
constexpr int kReadsPerTurn = 4;     // then the loop serves other events
constexpr size_t kTailLines = 20;
constexpr size_t kTailLineBytes = 2 << 10;

}  // namespace

class WorkerOutput::Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(asio::io_context& loop, Console& console, LogFiles& files, Console::Stream target, const StreamSpec& spec)
      : console_(console), files_(files), target_(target), spec_(spec), pipe_(loop) {
    if (spec_.filter_file.empty()) spec_.filters.clear();
    bare_ = spec_.console && spec_.file.empty() && spec_.prefix.empty() && spec_.filters.empty() && !spec_.keep_tail;
  }
  ~Stream() {
    if (for_worker_ != -1 && owned_) close(for_worker_);
  }

  Status Open(SharedFiles& shared) {
    if (!spec_.piped()) return spec_.console ? absl::OkStatus() : OpenNull();  // OK: it is inherited
    if (bare_) console_.WaitForReader(target_);
    if (!spec_.file.empty()) {
      MUSTER_ASSIGN_OR_RETURN(file_, files_.Open(spec_.file, /*truncate=*/true));
    }
    if (!spec_.filters.empty()) {
      auto& filtered = shared[spec_.filter_file];
      if (!filtered) {
        MUSTER_ASSIGN_OR_RETURN(filtered, files_.Open(spec_.filter_file, /*truncate=*/false));
      }
      filtered_ = filtered;
    }
    return OpenPipe();
  }

  int for_worker() const { return for_worker_; }

  void Started(Read read) {
    read_ = std::move(read);
    if (owned_) close(for_worker_);
    owned_ = false;
    for_worker_ = -1;
    Wait();
  }

  void WorkerEnded() {
    Drain();
    EndLine();
  }

  void Finish() {
    Drain();
    EndLine();
    error_code ignored;
    pipe_.close(ignored);
    file_.reset();
    filtered_.reset();
  }

  std::vector<std::string> Tail() const { return {tail_.begin(), tail_.end()}; }
  std::string Reason(TimePoint now, bool suddenly) const {
    const RecentText::Part part = recent_.Since(now - kReasonAge, now - kReasonFreshAge);
    return ReasonLine(part.text, suddenly ? part.text.size() : part.fresh_from);
  }
  std::string ErrorSoFar() {
    Drain();
    const TimePoint now = MonotonicClock::now();
    const RecentText::Part part = recent_.Since(now - kReasonFreshAge, now);
    return ReasonLine(part.text, part.text.size());
  }
  // While output waits in the pipe for lack of room, the worker is not silent.
  std::optional<TimePoint> last_byte() const { return held_back_ ? MonotonicClock::now() : last_byte_; }

 private:
  Status OpenNull() {
    for_worker_ = open("/dev/null", O_RDWR | O_CLOEXEC);
    owned_ = for_worker_ != -1;
    return owned_ ? absl::OkStatus() : ErrnoStatus(errno, "opening /dev/null");
  }

  Status OpenPipe() {
    MUSTER_ASSIGN_OR_RETURN(PipeEnds ends, MakePipe());
    for_worker_ = ends.writing.Release();
    owned_ = true;
    MUSTER_RETURN_IF_ERROR(Attach(pipe_, std::move(ends.reading), "watching the pipe of its output"));
    // Only the reading end: each end has its own open file description, and so its own flags.
    const bool set = fcntl(pipe_.native_handle(), F_SETFL, O_NONBLOCK) != -1;
    return set ? absl::OkStatus() : ErrnoStatus(errno, "setting up the pipe of its output");
  }

  void Wait() {
    if (!pipe_.is_open()) return;
    pipe_.async_wait(asio::posix::descriptor_base::wait_read, [weak = weak_from_this()](error_code failed) {
      auto self = weak.lock();
      if (self && !failed) self->OnReadable();
    });
  }

  void OnReadable() {
    auto again = [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->OnReadable();
    };
    // The worker waits for the console's reader and the disk, as without an agent, until Console or LogFiles gives up.
    const bool console_full = spec_.console && !console_.HasRoom(target_);
    held_back_ = console_full || ((file_ || filtered_) && !files_.HasRoom());
    if (console_full) return console_.WhenRoom(target_, again);
    if (held_back_) return files_.WhenRoom(again);
    for (int i = 0; i < kReadsPerTurn; ++i) {
      ssize_t got = ReadSome();
      if (got == 0) return;
      if (got == -1) break;
    }
    Wait();
  }

  // Reads what is in the pipe now, at most its capacity, since a process may go on writing.
  void Drain() {
    if (!pipe_.is_open()) return;
    int64_t left = fcntl(pipe_.native_handle(), F_GETPIPE_SZ);
    while (left > 0) {
      ssize_t got = ReadSome();
      if (got <= 0) return;
      left -= got;
    }
  }

  // Returns the bytes read; 0 at the end of the stream, after closing the pipe; -1 if the pipe is empty.
  ssize_t ReadSome() {
    if (!pipe_.is_open()) return 0;
    char buffer[kPiece];
    ssize_t got;
    do {
      got = read(pipe_.native_handle(), buffer, sizeof buffer);
    } while (got == -1 && errno == EINTR);
    if (got > 0) {
      const std::string_view bytes(buffer, got);
      read_(target_, bytes);
      last_byte_ = MonotonicClock::now();
      if (spec_.keep_tail) recent_.Add(bytes, *last_byte_);
      Take(bytes);
    } else if (got == 0 || errno != EAGAIN) {
      EndLine();
      error_code ignored;
      pipe_.close(ignored);
      return 0;
    }
    return got;
  }

  void Take(std::string_view bytes) {
    if (bare_) return console_.Write(target_, std::string(bytes), /*starts_line=*/false);
    if (file_) file_->Write(bytes);
    if (!spec_.console && !filtered_ && !spec_.keep_tail) return;
    for (;;) {
      // A \r at the very end may be half of \r\n, so it waits in the partial line.
      if (!partial_.empty() && partial_.back() == '\r' && !bytes.empty()) {
        if (bytes.front() == '\n') {
          partial_ += '\n';
          bytes.remove_prefix(1);
        }
        TakeLine(partial_);
        partial_.clear();
      }
      size_t end = bytes.find_first_of("\r\n");
      if (end == std::string_view::npos || (bytes[end] == '\r' && end + 1 == bytes.size())) break;
      size_t next = end + 1;
      if (bytes[end] == '\r' && bytes[next] == '\n') ++next;
      if (partial_.empty()) {
        TakeLine(bytes.substr(0, next));
      } else {
        partial_ += bytes.substr(0, next);
        TakeLine(partial_);
        partial_.clear();
      }
      bytes.remove_prefix(next);
    }
    partial_ += bytes;
    while (partial_.size() >= kPiece) {
      TakeLine(std::string_view(partial_).substr(0, kPiece));
      partial_.erase(0, kPiece);
    }
    ShowUpdate();
    FlushConsole();
  }

  void EndLine() {
    if (!partial_.empty()) TakeLine(partial_);
    partial_.clear();
    if (line_bytes_ > 0) EndConsoleLine();
    FlushConsole();
  }

  // Takes one line with its end, or a piece of a line without. An update of a progress bar ends with \r. It is a line
  // for the filters and the tail, but on the console all updates of a bar are one line, each with the prefix.
  void TakeLine(std::string_view line) {
    if (spec_.console) ToConsole(line.substr(std::min(shown_, line.size())));
    shown_ = 0;
    if (spec_.console && line.back() != '\r' && line.back() != '\n') EndConsoleLine();
    const std::string_view text = line.substr(0, line.find_last_not_of("\r\n") + 1);
    if (text.empty() && line == "\r") return;  // progress bars begin with \r
    if (filtered_) {
      for (const std::string& filter : spec_.filters) {
        if (text.find(filter) == std::string_view::npos) continue;
        filtered_->Write(fmt::format("{}{}\n", spec_.prefix, text));
        break;
      }
    }
    if (spec_.keep_tail) {
      if (tail_rewritten_ && !tail_.empty()) tail_.pop_back();
      tail_rewritten_ = line.back() == '\r';
      if (tail_.size() == kTailLines) tail_.pop_front();
      tail_.emplace_back(Beginning(text, kTailLineBytes));
    }
  }

  // Shows the current update of a progress bar now, not when the next update begins. Leaves out a \r at the end, which
  // may be half of \r\n.
  void ShowUpdate() {
    if (!spec_.console || partial_.empty() || (line_bytes_ == 0 && partial_.back() != '\r')) return;
    const size_t end = partial_.back() == '\r' ? partial_.size() - 1 : partial_.size();
    if (end > shown_) ToConsole(std::string_view(partial_).substr(shown_, end - shown_));
    shown_ = std::max(shown_, end);
  }

  void ToConsole(std::string_view bytes) {
    if (bytes.empty()) return;
    if (line_bytes_ == 0) starts_line_ |= for_console_.empty();
    if (line_bytes_ == 0 || rewrites_) for_console_ += spec_.prefix;
    rewrites_ = bytes.back() == '\r';
    for_console_ += bytes;
    line_bytes_ += bytes.size();
    if (bytes.back() == '\n') {
      line_bytes_ = 0;
    } else if (bytes.back() == '\r' && line_bytes_ >= kPiece) {
      EndConsoleLine();
    }
  }

  void EndConsoleLine() {
    for_console_ += '\n';
    rewrites_ = false;
    line_bytes_ = 0;
  }

  void FlushConsole() {
    if (for_console_.empty()) return;
    console_.Write(target_, std::exchange(for_console_, {}), std::exchange(starts_line_, false));
  }

  Console& console_;
  LogFiles& files_;
  const Console::Stream target_;
  StreamSpec spec_;
  bool bare_ = false;  // observed only: the console gets the bytes as they come, and all of them
  asio::posix::stream_descriptor pipe_;
  std::shared_ptr<LogFile> file_;
  std::shared_ptr<LogFile> filtered_;
  Read read_;
  std::optional<TimePoint> last_byte_;
  bool held_back_ = false;  // the pipe has bytes, but the console or the files have no room
  int for_worker_ = -1;
  bool owned_ = false;
  std::string partial_;       // the line that has not ended
  size_t shown_ = 0;          // bytes of partial_ that are on the console already (progress bar)
  std::string for_console_;   // text of this read for the console
  bool starts_line_ = false;  // for_console_ begins a line
  size_t line_bytes_ = 0;     // bytes of the console's line that has not ended, without prefixes
  bool rewrites_ = false;     // the line's last byte is \r: what follows overwrites it, its prefix too
  std::deque<std::string> tail_;
  RecentText recent_{kReasonText, kReasonAge};
  bool tail_rewritten_ = false;  // the last line ended in \r, so the next one replaces it
};

WorkerOutput::WorkerOutput() = default;
WorkerOutput::~WorkerOutput() = default;

StatusOr<std::unique_ptr<WorkerOutput>> WorkerOutput::Open(asio::io_context& loop, Console& console, LogFiles& files,
                                                           const OutputSpec& spec, SharedFiles& shared) {
  std::unique_ptr<WorkerOutput> output(new WorkerOutput);
  output->out_ = std::make_shared<Stream>(loop, console, files, Console::Stream::kOut, spec.out);
  output->err_ = std::make_shared<Stream>(loop, console, files, Console::Stream::kErr, spec.err);
  MUSTER_RETURN_IF_ERROR(output->out_->Open(shared));
  MUSTER_RETURN_IF_ERROR(output->err_->Open(shared));
  return output;
}

int WorkerOutput::out() const { return out_->for_worker(); }
int WorkerOutput::err() const { return err_->for_worker(); }

void WorkerOutput::Started(const Read& read) {
  out_->Started(read);
  err_->Started(read);
}

void WorkerOutput::WorkerEnded() {
  out_->WorkerEnded();
  err_->WorkerEnded();
}

void WorkerOutput::Finish() {
  out_->Finish();
  err_->Finish();
}

std::vector<std::string> WorkerOutput::StdoutTail() const { return out_->Tail(); }
std::vector<std::string> WorkerOutput::StderrTail() const { return err_->Tail(); }

std::string WorkerOutput::StderrReason(TimePoint now, bool suddenly) const { return err_->Reason(now, suddenly); }

std::string WorkerOutput::ErrorSoFar() { return err_->ErrorSoFar(); }

std::optional<TimePoint> WorkerOutput::LastByte() const { return std::max(out_->last_byte(), err_->last_byte()); }

}  // namespace muster::launcher
