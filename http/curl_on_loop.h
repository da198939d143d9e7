// SPDX-License-Identifier: Apache-2.0
// A libcurl multi handle whose sockets and timer an Asio loop watches. Loop thread only.
#pragma once

#include <curl/curl.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <unordered_map>

namespace muster::http {

class CurlOnLoop {
 public:
  // `acted`: called after each step of libcurl; transfers may have ended in it. It may destroy this object.
  CurlOnLoop(boost::asio::io_context& loop, std::function<void()> acted);
  // Closes all connections. No transfer is left in the handle.
  ~CurlOnLoop();
  CurlOnLoop(const CurlOnLoop&) = delete;
  CurlOnLoop& operator=(const CurlOnLoop&) = delete;

  CURLM* multi() const { return multi_; }

 private:
  // A socket of libcurl, watched for the events that libcurl wants. The map owns it; handlers find it by its number.
  struct Socket {
    Socket(boost::asio::io_context& loop, curl_socket_t socket) : descriptor(loop, socket) {}
    boost::asio::posix::stream_descriptor descriptor;
    uint64_t number = 0;
    CURL* user = nullptr;  // the transfer on it; libcurl removes the socket before it forgets the transfer
    int wanted = 0;
    bool reading = false;
    bool writing = false;
    bool reading_on = false;
  };

  static int OnSocket(CURL* easy, curl_socket_t socket, int what, void* self, void*);
  static int OnTimer(CURLM*, long milliseconds, void* self);
  static bool CanReadOn(const Socket& watched);

  void Watch(curl_socket_t socket, CURL* user, int wanted);
  void Wait(curl_socket_t socket, Socket& watched, boost::asio::posix::stream_descriptor::wait_type type);
  void Act(curl_socket_t socket, int events);
  void ReadOn(curl_socket_t socket, Socket& watched);

  boost::asio::io_context& loop_;
  const std::function<void()> acted_;
  CURLM* multi_;
  boost::asio::steady_timer timer_;
  std::unordered_map<curl_socket_t, std::unique_ptr<Socket>> sockets_;
  uint64_t last_ = 0;  // number of a socket
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::http
