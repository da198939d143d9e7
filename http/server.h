// A small HTTP/1.1 server on the loop, for probes, scrapers and admission reviews: a few paths, each with GET and HEAD,
// or with POST.
//
// Loop thread only. It never blocks: a client that is slow, half-open or does not read delays nobody, and its own
// request has one deadline from its first byte to the last byte of the answer. A TLS handshake has the same limit.
// Requests are read one by one, so pipelined ones are answered in order; a connection stays open between them unless
// the client or HTTP/1.0 says otherwise.
//
//   400  what came is no HTTP/1 request (Boost.Beast's parser decides)
//   404  no such path; the body lists those there are
//   405  a method that the path does not have
//   413  a body beyond the path's limit (of GET and HEAD it is read and dropped); 431 headers above 8 KiB
// After each of these but 404 and 405 the connection ends. A body takes memory as it comes, so at most `connections`
// times the largest limit.
//
// Where `connections` are open, the next one replaces the oldest that waits between two requests, else the oldest of
// all: a crowd that keeps its connections open cannot keep a probe out.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "http/headers.h"
#include "http/server_stream.h"

namespace muster::http {

class Server {
 public:
  struct Request {
    std::string method;  // "GET", "HEAD", "POST"
    std::string path;    // without query, as sent: not percent-decoded
    std::string query;   // what follows '?'
    Headers headers;
    std::string body;  // of POST

    std::optional<std::string_view> Find(std::string_view name) const;  // the first header by that name, in lower case
  };

  struct Response {
    int status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body;
  };

  // Called once, on the loop, at any time, also inside the handler. Later than the request's deadline it does nothing.
  using Answer = std::function<void(Response)>;
  using Handler = std::function<void(const Request&, Answer)>;

  struct Route {
    Handler handler;
    bool post = false;               // POST only; else GET and HEAD
    size_t longest_body = 16 << 10;  // bytes
  };
  // By path. One that ends with '/' stands for all paths that begin with it; the longest counts.
  using Routes = std::map<std::string, Route>;

  struct Options {
    size_t connections = 32;
    Duration request = std::chrono::seconds(10);  // from its first byte to the end of the answer
    Duration idle = std::chrono::seconds(120);    // between two requests; scrapers come every 15 to 60 s
    std::shared_ptr<ServerStreams> tls;           // null: plain TCP
  };

  // `host`: a numeric address, "localhost", or "" for every address, IPv6 and IPv4. Port 0: the kernel chooses.
  // AlreadyExists: the port is taken; others as the system call says. Messages name the address.
  static StatusOr<std::unique_ptr<Server>> Listen(boost::asio::io_context& loop, const std::string& host, uint16_t port,
                                                  Routes routes, Options options);
  ~Server();  // closes every connection; may be called inside a handler

  uint16_t port() const;
  size_t connections() const;  // open now

 private:
  class Impl;
  explicit Server(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::http
