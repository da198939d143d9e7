// One run of bytes of an entry, asked for until it is there: request, redirect, retry from the byte where it ended.
//
// What becomes of the bytes is its taker's business. Loop thread only; destroying it ends it without a word.
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
#include "initializers/provider.h"

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
    std::function<void()> throttled;       // a server said that we are too fast
    std::function<void()> requested;       // one more request
    std::optional<TimePoint> succeeded{};  // when the last of its fetches had all it wanted; theirs to keep
  };
  struct Taker {
    // Who takes the next bytes, in order; called for each answer that brings some. It is given what is left at most,
    // and must not say that it has enough.
    std::function<std::shared_ptr<http::Intake>()> intake;
    // What was taken counts no more, all of it comes again: nothing pins an entry without a version, and an answer
    // that says no length and ends early may have been anything.
    std::function<void()> restart;
    std::function<void(const Expectation&)> expect;  // the answer's head told the whole entry's hash
    std::function<void()> done;                      // all of them were taken
    std::function<void(http::Refusal)> failed;       // for good
  };

  Fetch(Context& context, http::Transport& http, const Entry& entry, ByteRange range, Taker taker);
  ~Fetch() override;
  Fetch(const Fetch&) = delete;
  Fetch& operator=(const Fetch&) = delete;

  void Begin();
  void Resume();  // the intake can take more

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
  uint64_t taken_ = 0;       // bytes of the range
  uint64_t asked_from_ = 0;  // of them, before this request
  http::ResponseHead head_;
  Reception reception_;
  std::shared_ptr<Portion> portion_;  // of this answer, if it brings bytes
  std::shared_ptr<Text> text_;        // of this answer, if it is an error
  http::RetryState asked_with_;       // what retry_ was as this request began
  int redirects_ = 0;
  bool heard_ = false;  // this request's head has come
  bool too_long_ = false;
  bool unframed_ = false;  // nothing tells whether what ended was all of it
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::initializers
