// SPDX-License-Identifier: Apache-2.0
// A small HTTP/1.1 server on the loop, for probes, scrapers and admission reviews: a few paths, each with GET and HEAD,
// or with POST.
//
// Loop thread only. It never blocks: a client that is slow, half-open or does not read delays no other one. A request
// has one deadline, from its first byte to the last byte of the answer; a TLS handshake has the same limit. A request
// that comes more slowly than server_rules.h allows ends sooner. Requests are answered in order, also pipelined ones.
// Then the connection stays open unless the client or HTTP/1.0 says otherwise.
//
//   400  no HTTP/1 request (Boost.Beast's parser and server_rules.h decide)
//   404  no such path; the body lists the paths
//   405  a method that the path does not have
//   413  a body above the path's limit (bodies of GET and HEAD are read and dropped); 431 headers above 8 KiB
//   501  a Transfer-Encoding other than chunked
//   503  all requests together are too large for `memory`
// After each of these except 404 and 405 the connection ends.
//
// If `connections` are open, or all requests together take more than `memory`, server_rules.h chooses the connection
// that is closed: never one that is being answered. While all are being answered, new ones wait to be accepted.
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
#include "http/feed.h"
#include "http/headers.h"
#include "http/server_stream.h"

namespace muster::http {

class Server {
 public:
  struct Request {
    std::string method;  // "GET", "HEAD", "POST"
    std::string path;    // without query, as sent: not percent-decoded
    std::string query;   // the text after '?'
    Headers headers;
    std::string body;  // of POST

    std::optional<std::string_view> Find(std::string_view name) const;  // first header called `name` (in lower case)
  };

  struct Response {
    int status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body;
    // Follows the body; the connection ends with it. It counts as being answered, so whoever makes feeds bounds them.
    std::shared_ptr<Feed> feed = nullptr;
    Headers headers = {};  // further ones; their values have no line breaks
  };

  // The handler calls it once, on the loop, before it returns or later. It does nothing after the request's deadline.
  using Answer = std::function<void(Response)>;
  using Handler = std::function<void(const Request&, Answer)>;

  struct Route {
    Handler handler;
    bool post = false;               // POST only; else GET and HEAD
    size_t longest_body = 16 << 10;  // bytes
    std::optional<Duration> answer;  // Options::request for this path; the request itself must come as fast as any
  };
  // Keyed by path. A key that ends with '/' matches all paths that begin with it, but "/" alone only itself; the
  // longest match counts.
  using Routes = std::map<std::string, Route>;

  struct Options {
    size_t connections = 32;
    // Bytes of all requests together. One counts from its first byte until its answer is sent, or until it is closed.
    size_t memory = 4 << 20;
    Duration request = std::chrono::seconds(10);  // from the first byte to the end of the answer
    Duration idle = std::chrono::seconds(120);    // between two requests; scrapers come every 15 to 60 s
    std::shared_ptr<ServerStreams> tls;           // null: plain TCP
  };

  // `host`: a numeric address, "localhost", or "" for every address, IPv6 and IPv4. Port 0: the kernel chooses.
  // InvalidArgument: another `host`. AlreadyExists: the port is taken. Other errors: the system call's. Messages name
  // the address.
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
