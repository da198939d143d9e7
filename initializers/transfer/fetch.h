// SPDX-License-Identifier: Apache-2.0
// Fetches one range of bytes of an entry: request, redirect, and retry from the byte at which an answer ended.
//
// The Taker decides what happens with the bytes. Loop thread only. The destructor ends it without a call.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/client.h"
#include "http/retry.h"
#include "initializers/facts/provider.h"

namespace muster::initializers {

class Fetch final : private http::Sink {
 public:
  struct Context {
    boost::asio::io_context& loop;
    Provider& provider;
    const http::Limits& limits;
    const http::RetryRules& retry;
    std::function<double()> jitter;  // [0, 1)
    std::function<void(const std::string&)> say;
    std::function<void()> throttled;       // a server answered "too many requests"
    std::function<void()> requested;       // called for each request
    std::optional<TimePoint> succeeded{};  // when a fetch of this context last had all its bytes; the fetches write it
  };
  struct Taker {
    // Returns the intake for the next bytes, in order. Called for each answer that brings bytes. The intake gets at
    // most the bytes that are missing, and must not say that it has enough.
    std::function<std::shared_ptr<http::Intake>()> intake;
    // The bytes so far do not count; the range is fetched again from its start. This happens after a failure if the
    // entry has no version, the server no ranges or the answer no length; and after too many bytes.
    std::function<void()> restart;
    std::function<void(const Expectation&)> expect;  // called if the head of an answer has the hash of the whole entry
    std::function<void()> done;                      // all bytes were taken
    std::function<void(http::Refusal)> failed;       // no retry helps
  };

  Fetch(Context& context, http::Transport& http, const Entry& entry, ByteRange range, Taker taker);
  ~Fetch() override;
  Fetch(const Fetch&) = delete;
  Fetch& operator=(const Fetch&) = delete;

  void Begin();
  void Resume();  // call it when the intake can take more

 private:
  class Portion;
  class Text;

  void Ask();
  void Prepare();
  void Send(const http::Request& request);
  std::shared_ptr<http::Intake> Head(const http::ResponseHead& head) override;
  void End(const http::TransferEnd& end) override;
  void Failed(http::Refusal refusal);
  http::Refusal Unhappy(const http::TransferEnd& end) const;

  Context& context_;
  http::Transport& http_;
  const Entry& entry_;
  const ByteRange range_;
  const Taker taker_;
  boost::asio::steady_timer pause_;
  http::RetryState retry_;
  Provider::Handle preparing_;
  http::Transport::Id transfer_ = 0;
  uint64_t taken_ = 0;       // bytes of the range that were taken
  uint64_t asked_from_ = 0;  // taken_ at the start of this request
  http::ResponseHead head_;
  Reception reception_;
  std::shared_ptr<Portion> portion_;  // body of this answer, if it has bytes of the entry
  std::shared_ptr<Text> text_;        // body of this answer, if it is an error
  http::RetryState asked_with_;       // retry_ at the start of this request
  int redirects_ = 0;
  bool heard_ = false;  // the head of this answer has arrived
  bool too_long_ = false;
  bool unframed_ = false;  // the answer has no length, so its end does not prove that it is complete
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::initializers
