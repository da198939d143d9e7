// SPDX-License-Identifier: Apache-2.0
#include "tests/store/store_client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>

#include "base/descriptors.h"
#include "base/text.h"
#include "rendezvous/store/protocol.h"

namespace muster::store {

StatusOr<StoreClient> StoreClient::Connect(std::string_view host, uint16_t port, Duration timeout) {
  TimePoint deadline = MonotonicClock::now() + timeout;
  boost::system::error_code error;
  auto address = boost::asio::ip::make_address(std::string(host), error);
  if (error) return absl::InvalidArgumentError(fmt::format("store client: \"{}\" is not a numeric address", host));
  boost::asio::ip::tcp::endpoint endpoint(address, port);
  int fd = ::socket(endpoint.data()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, "store client: socket");
  StoreClient client(fd, timeout);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  std::string where = fmt::format("store client: connecting to {}:{}", host, port);
  if (::connect(fd, endpoint.data(), endpoint.size()) != 0) {
    if (errno != EINPROGRESS) return ErrnoStatus(errno, where);
    if (!ReadyBy(fd, POLLOUT, deadline)) return absl::DeadlineExceededError(where + ": no answer in time");
    int failure = 0;
    socklen_t size = sizeof(failure);
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0) return ErrnoStatus(failure, where);
  }
  PutOp(&client.out_, Op::kValidate);
  PutNumber(&client.out_, kMagic);
  MUSTER_RETURN_IF_ERROR(Annotate(client.Ping(), where));
  return client;
}

StoreClient::StoreClient(StoreClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), timeout_(other.timeout_), out_(std::move(other.out_)) {}

StoreClient& StoreClient::operator=(StoreClient&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(timeout_, other.timeout_);
  std::swap(out_, other.out_);
  return *this;
}

StoreClient::~StoreClient() {
  if (fd_ >= 0) ::close(fd_);
}

Status StoreClient::Broken(std::string_view why, absl::StatusCode code) {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  return Status(code, fmt::format("store client: {}", why));
}

Status StoreClient::Send(TimePoint deadline) {
  if (fd_ < 0) return absl::UnavailableError("store client: the connection was lost in an earlier call");
  size_t done = 0;
  while (done < out_.size()) {
    ssize_t sent = ::send(fd_, out_.data() + done, out_.size() - done, MSG_NOSIGNAL);
    if (sent > 0) {
      done += static_cast<size_t>(sent);
    } else if (errno == EAGAIN) {
      if (ReadyBy(fd_, POLLOUT, deadline)) continue;
      return Broken("the server did not read the request in time", absl::StatusCode::kDeadlineExceeded);
    } else if (errno != EINTR) {
      return Broken(Message(ErrnoStatus(errno, "sending")));
    }
  }
  out_.clear();
  return absl::OkStatus();
}

Status StoreClient::ReceiveExactly(void* into, size_t bytes, TimePoint deadline) {
  char* at = static_cast<char*>(into);
  while (bytes > 0) {
    ssize_t count = ::recv(fd_, at, bytes, 0);
    if (count > 0) {
      at += count;
      bytes -= static_cast<size_t>(count);
    } else if (count == 0) {
      return Broken("the server closed the connection");
    } else if (errno == EAGAIN) {
      if (ReadyBy(fd_, POLLIN, deadline)) continue;
      return Broken("no answer in time", absl::StatusCode::kDeadlineExceeded);
    } else if (errno != EINTR) {
      return Broken(Message(ErrnoStatus(errno, "receiving")));
    }
  }
  return absl::OkStatus();
}

Status StoreClient::Exchange(void* answer, size_t bytes) {
  TimePoint deadline = Deadline();
  MUSTER_RETURN_IF_ERROR(Send(deadline));
  return ReceiveExactly(answer, bytes, deadline);
}

StatusOr<std::string> StoreClient::ReceiveString(TimePoint deadline) {
  uint64_t length = 0;
  MUSTER_RETURN_IF_ERROR(ReceiveExactly(&length, sizeof(length), deadline));
  if (length > kMaxAnswer)
    return Broken(fmt::format("the server announces an answer of more than {} bytes", kMaxAnswer));
  std::string text(length, 0);
  MUSTER_RETURN_IF_ERROR(ReceiveExactly(text.data(), length, deadline));
  return text;
}

StatusOr<std::vector<std::string>> StoreClient::ReceiveStrings(uint64_t count, TimePoint deadline) {
  std::vector<std::string> texts;
  while (count-- > 0) {
    MUSTER_ASSIGN_OR_RETURN(std::string text, ReceiveString(deadline));
    texts.push_back(std::move(text));
  }
  return texts;
}

Status StoreClient::Set(std::string_view key, std::string_view value) {
  PutOp(&out_, Op::kSet);
  PutString(&out_, key);
  PutString(&out_, value);
  return Send(Deadline());
}

StatusOr<std::string> StoreClient::CompareSet(std::string_view key, std::string_view expected,
                                              std::string_view desired) {
  PutOp(&out_, Op::kCompareSet);
  PutString(&out_, key);
  PutString(&out_, expected);
  PutString(&out_, desired);
  MUSTER_RETURN_IF_ERROR(Send(Deadline()));
  return ReceiveString(Deadline());
}

StatusOr<std::string> StoreClient::Get(std::string_view key) {
  PutOp(&out_, Op::kGet);
  PutString(&out_, key);
  MUSTER_RETURN_IF_ERROR(Send(Deadline()));
  return ReceiveString(Deadline());
}

StatusOr<int64_t> StoreClient::Add(std::string_view key, int64_t delta) {
  PutOp(&out_, Op::kAdd);
  PutString(&out_, key);
  PutNumber(&out_, delta);
  int64_t sum = 0;
  MUSTER_RETURN_IF_ERROR(Exchange(&sum, sizeof(sum)));
  return sum;
}

StatusOr<bool> StoreClient::Check(const std::vector<std::string>& keys) {
  PutKeys(&out_, Op::kCheck, keys);
  uint8_t answer = 0;
  MUSTER_RETURN_IF_ERROR(Exchange(&answer, 1));
  return answer == kReady;
}

Status StoreClient::Wait(const std::vector<std::string>& keys, Duration timeout) {
  PutKeys(&out_, Op::kWait, keys);
  Status status = AwaitStop(timeout);
  if (!absl::IsDeadlineExceeded(status)) return status;
  return Annotate(status, fmt::format("waiting for {}", Join(keys, ", ")));
}

Status StoreClient::AwaitStop(Duration timeout) {
  MUSTER_RETURN_IF_ERROR(Send(Deadline()));
  uint8_t answer = 0;
  if (ReadyBy(fd_, POLLIN, MonotonicClock::now() + timeout)) {
    MUSTER_RETURN_IF_ERROR(ReceiveExactly(&answer, 1, Deadline()));
    return answer == kStopWaiting ? absl::OkStatus() : Broken("an unexpected answer to a wait");
  }
  PutOp(&out_, Op::kCancelWait);
  MUSTER_RETURN_IF_ERROR(Exchange(&answer, 1));
  if (answer == kWaitCanceled) return absl::DeadlineExceededError("not set in time");
  // The end of the wait crossed with the cancellation, whose own answer follows.
  MUSTER_RETURN_IF_ERROR(ReceiveExactly(&answer, 1, Deadline()));
  return answer == kWaitCanceled ? absl::OkStatus() : Broken("an unexpected answer to a cancellation");
}

StatusOr<int64_t> StoreClient::NumKeys() {
  PutOp(&out_, Op::kGetNumKeys);
  int64_t count = 0;
  MUSTER_RETURN_IF_ERROR(Exchange(&count, sizeof(count)));
  return count;
}

StatusOr<bool> StoreClient::Delete(std::string_view key) {
  PutOp(&out_, Op::kDeleteKey);
  PutString(&out_, key);
  int64_t count = 0;
  MUSTER_RETURN_IF_ERROR(Exchange(&count, sizeof(count)));
  return count > 0;
}

Status StoreClient::Append(std::string_view key, std::string_view value) {
  PutOp(&out_, Op::kAppend);
  PutString(&out_, key);
  PutString(&out_, value);
  return Send(Deadline());
}

StatusOr<std::vector<std::string>> StoreClient::MultiGet(const std::vector<std::string>& keys) {
  PutKeys(&out_, Op::kMultiGet, keys);
  MUSTER_RETURN_IF_ERROR(Send(Deadline()));
  return ReceiveStrings(keys.size(), Deadline());
}

Status StoreClient::MultiSet(const std::vector<std::pair<std::string, std::string>>& pairs) {
  PutOp(&out_, Op::kMultiSet);
  PutNumber<int64_t>(&out_, static_cast<int64_t>(pairs.size()));
  for (const auto& [key, value] : pairs) {
    PutString(&out_, key);
    PutString(&out_, value);
  }
  return Send(Deadline());
}

Status StoreClient::Ping() {
  const uint32_t nonce = static_cast<uint32_t>(::getpid());
  PutOp(&out_, Op::kPing);
  PutNumber(&out_, nonce);
  uint32_t answer = 0;
  MUSTER_RETURN_IF_ERROR(Exchange(&answer, sizeof(answer)));
  return answer == nonce ? absl::OkStatus() : Broken("PING answered with another number");
}

Status StoreClient::QueuePush(std::string_view key, std::string_view value) {
  PutOp(&out_, Op::kQueuePush);
  PutString(&out_, key);
  PutString(&out_, value);
  return Send(Deadline());
}

StatusOr<std::optional<std::string>> StoreClient::QueuePop(std::string_view key) {
  PutOp(&out_, Op::kQueuePop);
  PutString(&out_, key);
  int64_t length = 0;
  MUSTER_RETURN_IF_ERROR(Exchange(&length, sizeof(length)));
  if (length <= 0) return std::optional<std::string>();
  MUSTER_ASSIGN_OR_RETURN(std::string value, ReceiveString(Deadline()));
  return std::optional<std::string>(std::move(value));
}

StatusOr<int64_t> StoreClient::QueueLength(std::string_view key) {
  PutOp(&out_, Op::kQueueLen);
  PutString(&out_, key);
  int64_t length = 0;
  MUSTER_RETURN_IF_ERROR(Exchange(&length, sizeof(length)));
  return length;
}

StatusOr<std::vector<std::string>> StoreClient::ListKeys() {
  PutOp(&out_, Op::kListKeys);
  int64_t count = 0;
  MUSTER_RETURN_IF_ERROR(Exchange(&count, sizeof(count)));
  return ReceiveStrings(static_cast<uint64_t>(count), Deadline());
}

Status StoreClient::Barrier(std::string_view key, int64_t world, Duration timeout) {
  PutOp(&out_, Op::kBarrier);
  PutString(&out_, key);
  PutNumber(&out_, world);
  return Annotate(AwaitStop(timeout), fmt::format("barrier {}", key));
}

}  // namespace muster::store
