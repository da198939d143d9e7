// One HTTP/1.1 question on the agent's loop: connect, ask, read, close.
//
// Loop thread only. Plain HTTP, no proxy, no redirect: for services of this machine and this cluster. The answer is
// bounded (64 KiB of body, 16 KiB of headers), and one deadline covers the whole, the name's look-up included.
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
};

struct FetchAnswer {
  int status = 0;
  std::string body;
  std::string etag;  // empty: it has none
};

// Destroying it drops the question; `done` is not called then.
class HttpFetch {
 public:
  using Done = std::function<void(StatusOr<FetchAnswer>)>;

  // Calls `done` once, on the loop, never from within this call; destroying the HttpFetch inside it is fine. Errors:
  // DeadlineExceeded, Unavailable (who could not be reached and why), DataLoss (the answer is no HTTP, too long, cut).
  static std::unique_ptr<HttpFetch> Start(boost::asio::io_context& loop, net::Resolver& resolver,
                                          const FetchRequest& request, Duration limit, Done done);
  ~HttpFetch();

 private:
  class Impl;
  explicit HttpFetch(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent
