// SPDX-License-Identifier: Apache-2.0
#include "initializers/archives/decompress.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <string>

#include "base/text.h"

namespace muster::initializers {
namespace {

constexpr size_t kAtOnce = size_t{256} << 10;           // bytes per piece, compressed and decompressed
constexpr int64_t kWithoutWindows = int64_t{56} << 20;  // bytes: memory of a run without windows
constexpr uint64_t kUsualWindow = uint64_t{8} << 20;
constexpr std::string_view kGzip = "\x1f\x8b";
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd";
constexpr std::string_view kZstdSkippable = "\x2a\x4d\x18";  // after a byte from 0x50 to 0x5f

class Plain final : public Decompressor {
 public:
  explicit Plain(int file) : file_(file) {}
  StatusOr<std::string_view> Next() override {
    ssize_t got = 0;
    do {
      got = pread(file_, buffer_.data(), buffer_.size(), offset_);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return ErrnoStatus(errno, "reading");
    offset_ += got;
    return std::string_view(buffer_.data(), static_cast<size_t>(got));
  }
  off_t offset() const { return offset_; }  // of the next byte
  // At most `most` bytes at `offset`.
  StatusOr<std::string> Peek(off_t offset, size_t most) const {
    std::string bytes(most, '\0');
    const ssize_t got = pread(file_, bytes.data(), most, offset);
    if (got < 0) return ErrnoStatus(errno, "reading");
    bytes.resize(static_cast<size_t>(got));
    return bytes;
  }

 private:
  const int file_;
  off_t offset_ = 0;
  std::string buffer_ = std::string(kAtOnce, '\0');
};

class Gzip final : public Decompressor {
 public:
  explicit Gzip(int file) : input_(file) {
    constexpr int kWindowAndGzip = 15 + 16;
    good_ = inflateInit2(&stream_, kWindowAndGzip) == Z_OK;
  }
  ~Gzip() override { inflateEnd(&stream_); }

  StatusOr<std::string_view> Next() override {
    if (!good_) return absl::ResourceExhaustedError("zlib has no memory");
    stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_out = kAtOnce;
    while (stream_.avail_out == kAtOnce) {
      if (stream_.avail_in == 0) {
        MUSTER_ASSIGN_OR_RETURN(std::string_view more, input_.Next());
        if (more.empty()) {
          if (!between_) return absl::DataLossError("gzip: it is cut short");
          return std::string_view();
        }
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(more.data()));
        stream_.avail_in = static_cast<uInt>(more.size());
      }
      if (between_ && *stream_.next_in == 0) {  // padding to a block, as on tapes
        ++stream_.next_in;
        --stream_.avail_in;
        continue;
      }
      between_ = false;
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        between_ = true;
        inflateReset(&stream_);
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        return absl::DataLossError(fmt::format("gzip: {}", stream_.msg == nullptr ? "broken" : stream_.msg));
      }
    }
    return std::string_view(buffer_.data(), kAtOnce - stream_.avail_out);
  }

 private:
  Plain input_;
  z_stream stream_{};
  bool good_ = false;
  bool between_ = false;  // one member has ended, the next has not begun
  std::string buffer_ = std::string(kAtOnce, '\0');
};

class Zstd final : public Decompressor {
 public:
  Zstd(int file, WindowLimits& windows)
      : windows_(windows), input_(file), stream_(ZSTD_createDStream(), &ZSTD_freeDStream) {}

  StatusOr<std::string_view> Next() override {
    if (!stream_) return absl::ResourceExhaustedError("zstd has no memory");
    ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size) {
        MUSTER_ASSIGN_OR_RETURN(std::string_view more, input_.Next());
        if (more.empty()) {
          if (wanted_ != 0) return absl::DataLossError("zstd: it is cut short");
          return std::string_view();
        }
        in_ = {more.data(), more.size(), 0};
      }
      if (wanted_ == 0) MUSTER_RETURN_IF_ERROR(Enter());
      wanted_ = ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (ZSTD_isError(wanted_) != 0) return absl::DataLossError(fmt::format("zstd: {}", ZSTD_getErrorName(wanted_)));
    }
    return std::string_view(buffer_.data(), out.pos);
  }

 private:
  // Call it at the start of a frame, before its window is allocated.
  Status Enter() {
    const off_t at = input_.offset() - static_cast<off_t>(in_.size - in_.pos);
    MUSTER_ASSIGN_OR_RETURN(const std::string header, input_.Peek(at, kFrameHeader));
    return TakeWindow(WindowOfFrame(header), "zstd: its window (--long, --ultra)", windows_.beside, windows_, &alone_);
  }

  WindowLimits& windows_;
  std::unique_lock<std::mutex> alone_;
  Plain input_;
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  size_t wanted_ = 0;  // 0: a frame has ended
  std::string buffer_ = std::string(kAtOnce, '\0');
};

}  // namespace

void BoundWindows(std::optional<int64_t> memory, int readers, WindowLimits* limits) {
  if (memory) {
    const auto left = static_cast<uint64_t>(std::max<int64_t>(*memory - kWithoutWindows, 0));
    limits->most = std::clamp(left, kUsualWindow, limits->most);
  }
  limits->beside = limits->most / static_cast<uint64_t>(std::max(readers, 1));
}

Status TakeWindow(uint64_t bytes, std::string_view whose, uint64_t beside, WindowLimits& limits,
                  std::unique_lock<std::mutex>* alone) {
  if (bytes > limits.most) {
    constexpr double kMiB = 1 << 20;
    return absl::ResourceExhaustedError(
        fmt::format("{} needs {:.0f} MiB of memory, and {:.0f} MiB is available: compress with a smaller window, raise "
                    "the memory limit (a window has at most 128 MiB), or bring it in without --extract",
                    whose, static_cast<double>(bytes) / kMiB, static_cast<double>(limits.most) / kMiB));
  }
  if (bytes > beside && !alone->owns_lock()) *alone = std::unique_lock(limits.wide);
  return absl::OkStatus();
}

// Source: RFC 8878 section 3.1.1.1.
uint64_t WindowOfFrame(std::string_view header) {
  if (!header.starts_with(kZstd) || header.size() < 6) return 0;
  auto byte = [&header](size_t at) { return static_cast<uint64_t>(static_cast<unsigned char>(header[at])); };
  const uint64_t descriptor = byte(4);
  const bool single_segment = (descriptor & 0x20) != 0;
  if (!single_segment) {
    const uint64_t base = uint64_t{1} << (10 + (byte(5) >> 3));
    return base + base / 8 * (byte(5) & 7);
  }
  constexpr size_t kDictionaryBytes[] = {0, 1, 2, 4}, kSizeBytes[] = {1, 2, 4, 8};
  const size_t begin = 5 + kDictionaryBytes[descriptor & 3], length = kSizeBytes[descriptor >> 6];
  if (header.size() < begin + length) return 0;
  uint64_t size = 0;
  for (size_t i = length; i-- > 0;) size = size << 8 | byte(begin + i);
  return length == 2 ? size + 256 : size;
}

StatusOr<std::unique_ptr<Decompressor>> Decompressor::Make(int file, WindowLimits& windows) {
  char first[4] = {};
  const ssize_t got = pread(file, first, sizeof first, 0);
  if (got < 0) return ErrnoStatus(errno, "reading");
  const std::string_view magic(first, static_cast<size_t>(got));
  if (magic.starts_with(kGzip)) return std::make_unique<Gzip>(file);
  const bool skippable = magic.ends_with(kZstdSkippable) && (static_cast<unsigned char>(first[0]) & 0xf0) == 0x50;
  if (magic == kZstd || skippable) return std::make_unique<Zstd>(file, windows);
  return std::make_unique<Plain>(file);
}

}  // namespace muster::initializers
