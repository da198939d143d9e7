// SPDX-License-Identifier: Apache-2.0
#include "http/curl_on_loop.h"

#include <openssl/ssl.h>

#include <boost/asio/post.hpp>
#include <cstdlib>

namespace muster::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kRecordsInTurn = 8;  // TLS records of one connection before the loop serves the others

// Options for glibc's resolver, which libcurl uses. A name server may answer A and never AAAA (RFC 4074, 4.1). With its
// defaults glibc then takes 15 s for a name. That is longer than Limits::connect, so every try would fail. With 2 s per
// question it takes 6 s.
constexpr char kLookUpOptions[] = "timeout:2 attempts:3";

struct GlobalCurl {
  GlobalCurl() {
    setenv("RES_OPTIONS", kLookUpOptions, /*overwrite=*/0);  // resolv.conf(5)
    curl_global_init(CURL_GLOBAL_DEFAULT);
  }
  ~GlobalCurl() { curl_global_cleanup(); }
};

// Whether OpenSSL holds bytes of the socket that may contain a whole record. libcurl reads one record and then waits
// for the socket, which may get no more bytes.
bool HasReadAhead(CURL* easy) {
  curl_tlssessioninfo* session = nullptr;
  curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session);
  if (!session || !session->internals) return false;
  auto* tls = static_cast<SSL*>(session->internals);
  return SSL_has_pending(tls) && !SSL_want_read(tls);
}

}  // namespace

CurlOnLoop::CurlOnLoop(asio::io_context& loop, std::function<void()> acted)
    : loop_(loop), acted_(std::move(acted)), timer_(loop) {
  static GlobalCurl global;  // libcurl requires this before the first thread
  multi_ = curl_multi_init();
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlOnLoop::OnSocket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlOnLoop::OnTimer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
}

CurlOnLoop::~CurlOnLoop() {
  curl_multi_cleanup(multi_);  // calls OnSocket for each socket, then closes it
  for (auto& [fd, socket] : sockets_) socket->descriptor.release();
}

bool CurlOnLoop::CanReadOn(const Socket& watched) {
  return (watched.wanted & CURL_POLL_IN) && HasReadAhead(watched.user);
}

int CurlOnLoop::OnSocket(CURL* easy, curl_socket_t socket, int what, void* self, void*) {
  static_cast<CurlOnLoop*>(self)->Watch(socket, easy, what);
  return 0;
}

void CurlOnLoop::Watch(curl_socket_t socket, CURL* user, int wanted) {
  if (wanted == CURL_POLL_REMOVE) {
    auto found = sockets_.find(socket);
    if (found == sockets_.end()) return;
    found->second->descriptor.release();  // libcurl closes it
    sockets_.erase(found);
    return;
  }
  auto& watched = sockets_[socket];
  if (!watched) {
    watched = std::make_unique<Socket>(loop_, socket);
    watched->number = ++last_;
  }
  watched->user = user;
  watched->wanted = wanted;
  if ((wanted & CURL_POLL_IN) && !watched->reading) {
    Wait(socket, *watched, asio::posix::stream_descriptor::wait_read);
  }
  if ((wanted & CURL_POLL_OUT) && !watched->writing) {
    Wait(socket, *watched, asio::posix::stream_descriptor::wait_write);
  }
}

void CurlOnLoop::Wait(curl_socket_t socket, Socket& watched, asio::posix::stream_descriptor::wait_type type) {
  const bool read = type == asio::posix::stream_descriptor::wait_read;
  (read ? watched.reading : watched.writing) = true;
  watched.descriptor.async_wait(
      type, [this, socket, read, number = watched.number, alive = std::weak_ptr<bool>(alive_)](error_code error) {
        if (alive.expired()) return;
        auto found = sockets_.find(socket);
        if (found == sockets_.end() || found->second->number != number) return;  // another socket reuses the descriptor
        (read ? found->second->reading : found->second->writing) = false;
        const int event = read ? CURL_CSELECT_IN : CURL_CSELECT_OUT;
        if (found->second->wanted & event) Act(socket, error ? event | CURL_CSELECT_ERR : event);
        if (alive.expired()) return;
        found = sockets_.find(socket);
        if (found == sockets_.end() || found->second->number != number) return;
        Watch(socket, found->second->user, found->second->wanted);
      });
}

int CurlOnLoop::OnTimer(CURLM*, long milliseconds, void* data) {
  auto* self = static_cast<CurlOnLoop*>(data);
  self->timer_.cancel();
  if (milliseconds < 0) return 0;
  self->timer_.expires_after(std::chrono::milliseconds(milliseconds));
  self->timer_.async_wait([self, alive = std::weak_ptr<bool>(self->alive_)](error_code error) {
    if (!error && !alive.expired()) self->Act(CURL_SOCKET_TIMEOUT, 0);
  });
  return 0;
}

void CurlOnLoop::Act(curl_socket_t socket, int events) {
  int running = 0;
  curl_multi_socket_action(multi_, socket, events, &running);
  if (socket == CURL_SOCKET_TIMEOUT) {
    for (auto& [fd, watched] : sockets_) ReadOn(fd, *watched);
  } else {
    // Read several records per turn of the loop: each turn checks all sockets, too much work for 16 KiB.
    auto found = sockets_.find(socket);
    for (int records = 1; records < kRecordsInTurn && found != sockets_.end() && CanReadOn(*found->second); ++records) {
      curl_multi_socket_action(multi_, socket, CURL_CSELECT_IN, &running);
      found = sockets_.find(socket);
    }
    if (found != sockets_.end()) ReadOn(socket, *found->second);
  }
  acted_();
}

void CurlOnLoop::ReadOn(curl_socket_t socket, Socket& watched) {
  if (watched.reading_on || !CanReadOn(watched)) return;
  watched.reading_on = true;
  asio::post(loop_, [this, socket, number = watched.number, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    auto found = sockets_.find(socket);
    if (found == sockets_.end() || found->second->number != number) return;
    found->second->reading_on = false;
    if (found->second->wanted & CURL_POLL_IN) Act(socket, CURL_CSELECT_IN);
  });
}

}  // namespace muster::http
