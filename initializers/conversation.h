// Small requests one after the other, as a coroutine on the loop: lists, looks, credentials. And their retries.
//
// Loop thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "base/status.h"
#include "initializers/http.h"
#include "initializers/provider.h"
#include "initializers/retry.h"

namespace muster::initializers {

// Runs it; it is cancelled, and destroyed, when the last copy of the handle goes. It must not throw.
std::shared_ptr<void> Converse(boost::asio::io_context& loop, boost::asio::awaitable<void> conversation);

// The answer to one request. Throws boost::system::system_error only where its conversation is cancelled.
boost::asio::awaitable<HttpAnswer> Asked(HttpClient& client, HttpRequest request, HttpLimits limits, size_t limit);

struct Persistence {
  HttpClient& http;
  HttpLimits limits;
  RetryRules retry;
  std::function<double()> jitter;
  std::function<void(const std::string&)> say;
};

// Asks until `judge` is content (no refusal), the failure is final, or patience is over. `prepare` makes the request
// anew each time (a signature ages); a Status it gives is final. What the network failed at is transient by itself.
using PrepareRequest = std::function<boost::asio::awaitable<StatusOr<HttpRequest>>()>;
using JudgeAnswer = std::function<std::optional<Refusal>(const HttpAnswer&)>;
boost::asio::awaitable<StatusOr<HttpAnswer>> AskedUntilAnswered(const Persistence& persistence, size_t limit,
                                                                PrepareRequest prepare, JudgeAnswer judge);

}  // namespace muster::initializers
