// SPDX-License-Identifier: Apache-2.0
// One HTTP/1.1 request on the agent's loop: connect, send, read, close.
//
// Loop thread only. Plain HTTP, no proxy, no redirect: for services of this machine and this cluster. The answer is
// bounded (in its body; 16 KiB of headers), and one deadline covers everything, including the look-up of the name.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/resolver.h"

namespace muster::agent {

struct FetchRequest {
  std::string method = "GET";
  std::string host;  // a name or an address, without brackets
  int port = 80;
  std::string target = "/";
  std::vector<std::pair<std::string, std::string>> headers;  // besides Host and Connection
  size_t longest_body = 64 << 10;                            // bytes of the answer's
};

struct FetchAnswer {
  int status = 0;
  std::string body;
  std::string etag;  // empty: it has none
};

// Whether nothing listened at the port: the process is gone, and its host is there. For an error of HttpFetch.
bool IsRefused(const Status& error);

// Destroying it cancels the request; `done` is not called then.
class HttpFetch {
 public:
  using Done = std::function<void(StatusOr<FetchAnswer>)>;

  // Calls `done` once, on the loop, never from within this call; `done` may destroy this. Errors: DeadlineExceeded;
  // Unavailable (which host was not reached, why); DataLoss (an answer that is not HTTP, too long or cut off).
  static std::unique_ptr<HttpFetch> Start(boost::asio::io_context& loop, net::Resolver& resolver,
                                          const FetchRequest& request, Duration limit, Done done);
  ~HttpFetch();

 private:
  class Impl;
  explicit HttpFetch(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent
