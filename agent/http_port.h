// A small HTTP/1.1 server on the agent's loop: a few paths, GET and HEAD, for probes and scrapers.
//
// Loop thread only. It never blocks: a client that is slow, half-open or does not read delays nobody, and its own
// request has one deadline from its first byte to the last byte of the answer. Requests are read one by one, so
// pipelined ones are answered in order; a connection stays open between them unless the client or HTTP/1.0 says
// otherwise.
//
//   400  what came is no HTTP/1 request (Boost.Beast's parser decides)
//   404  no such path; the body lists those there are
//   405  another method than GET or HEAD
//   413  a body above 16 KiB (a smaller one is read and passed over); 431 headers above 8 KiB
// After each of these but 404 and 405 the connection ends.
//
// Where `connections` are open, the next one replaces the oldest that waits between two requests, else the oldest of
// all: a crowd that keeps its connections open cannot keep a probe out.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace muster::agent {

struct HttpRequest {
  std::string path;   // without query, as sent: not percent-decoded
  std::string query;  // what follows '?'
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Called once, on the loop, at any time, also inside the handler. Later than the request's deadline it does nothing.
using HttpAnswer = std::function<void(HttpResponse)>;
using HttpHandler = std::function<void(const HttpRequest&, HttpAnswer)>;

class HttpPort {
 public:
  struct Limits {
    size_t connections = 32;
    Duration request = std::chrono::seconds(10);  // from its first byte to the end of the answer
    Duration idle = std::chrono::seconds(120);    // between two requests; scrapers come every 15 to 60 s
  };

  // `host`: a numeric address, "localhost", or "" for every address, IPv6 and IPv4. Port 0: the kernel chooses.
  // AlreadyExists: the port is taken; others as the system call says. Messages name the address.
  static StatusOr<std::unique_ptr<HttpPort>> Listen(boost::asio::io_context& loop, const std::string& host,
                                                    uint16_t port, std::map<std::string, HttpHandler> handlers,
                                                    Limits limits);
  static StatusOr<std::unique_ptr<HttpPort>> Listen(boost::asio::io_context& loop, const std::string& host,
                                                    uint16_t port, std::map<std::string, HttpHandler> handlers) {
    return Listen(loop, host, port, std::move(handlers), Limits());
  }
  ~HttpPort();  // closes every connection; may be called inside a handler

  uint16_t port() const;
  size_t connections() const;  // open now

 private:
  class Impl;
  explicit HttpPort(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent
