// SPDX-License-Identifier: Apache-2.0
// Lets a coroutine wait for the answer to one call of ApiClient. Loop thread only.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "controller/kube/client/api_client.h"
#include "http/conversation.h"

namespace muster::controller {

// `call` takes an ApiClient::Done and returns the call's handle. Throws http::Cancelled if the coroutine is cancelled.
template <class Call>
boost::asio::awaitable<StatusOr<Json>> Answer(Call call) {
  StatusOr<Json> answer = absl::UnknownError("not yet");
  // Never fires; cancelling it resumes the coroutine. The loop owns the coroutine while it waits.
  boost::asio::steady_timer answered(co_await boost::asio::this_coro::executor,
                                     boost::asio::steady_timer::time_point::max());
  const ApiClient::Handle handle = call([&answer, &answered](StatusOr<Json> its) {
    answer = std::move(its);
    answered.cancel();
  });
  co_await answered.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  http::ThrowIfCancelled(co_await boost::asio::this_coro::cancellation_state);
  co_return answer;
}

}  // namespace muster::controller
