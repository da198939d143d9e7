#include "initializers/http_threads.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>

namespace muster::initializers {

namespace asio = boost::asio;

// One answer, on its thread: what it hears goes to the loop, and what the loop says of it comes back.
class HttpThreads::Answer final : public HttpSink, public HttpIntake, public std::enable_shared_from_this<Answer> {
 public:
  Answer(Thread& thread, Id id) : thread_(thread), id_(id) {}

  void Begin(const HttpRequest& request, const HttpLimits& limits);
  void Resume();
  void Cancel();
  void Judged(std::shared_ptr<HttpIntake> intake);

 private:
  std::shared_ptr<HttpIntake> Head(const HttpHead& head) override;
  Taken Take(std::string_view bytes) override;
  void End(const HttpEnd& end) override;

  Thread& thread_;
  const Id id_;
  Id transfer_ = 0;
  std::shared_ptr<HttpIntake> intake_;
  bool judged_ = false;
};

class HttpThreads::Thread {
 public:
  explicit Thread(HttpThreads& owner)
      : owner_(owner), main_(owner.loop_), owner_alive_(owner.alive_), http_(loop_, owner.options_) {
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~Thread() {
    loop_.stop();
    thread_.join();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // On the owner's loop.
  int busy = 0;  // answers that are asked for
  void Start(Id id, const HttpRequest& request, const HttpLimits& limits) {
    ++busy;
    asio::post(loop_, [this, id, request, limits] {
      auto answer = std::make_shared<Answer>(*this, id);
      answers_.emplace(id, answer);
      answer->Begin(request, limits);
    });
  }
  // `call` on the thread, if the answer has not ended there.
  template <typename Call>
  void With(Id id, Call call) {
    asio::post(loop_, [this, id, call = std::move(call)]() mutable {
      auto found = answers_.find(id);
      if (found != answers_.end()) call(*std::shared_ptr<Answer>(found->second));
    });
  }

  // On the thread.
  HttpClient& http() { return http_; }
  void Forget(Id id) { answers_.erase(id); }
  template <typename Call>
  void Tell(Call call) {  // call(owner) on the owner's loop
    asio::post(main_, [&owner = owner_, alive = owner_alive_, call = std::move(call)] {
      if (!alive.expired()) call(owner);
    });
  }

 private:
  HttpThreads& owner_;
  asio::io_context& main_;
  const std::weak_ptr<bool> owner_alive_;
  asio::io_context loop_{1};
  const asio::executor_work_guard<asio::io_context::executor_type> open_ = asio::make_work_guard(loop_);
  HttpClient http_;
  std::unordered_map<Id, std::shared_ptr<Answer>> answers_;
  std::thread thread_;
};

void HttpThreads::Answer::Begin(const HttpRequest& request, const HttpLimits& limits) {
  transfer_ = thread_.http().Start(request, limits, *this);
}

void HttpThreads::Answer::Resume() { thread_.http().Resume(transfer_); }

void HttpThreads::Answer::Cancel() {
  thread_.http().Cancel(transfer_);
  thread_.Forget(id_);
}

void HttpThreads::Answer::Judged(std::shared_ptr<HttpIntake> intake) {
  judged_ = true;
  intake_ = std::move(intake);
  Resume();
}

std::shared_ptr<HttpIntake> HttpThreads::Answer::Head(const HttpHead& head) {
  thread_.Tell([id = id_, head](HttpThreads& owner) { owner.Heard(id, head); });
  return shared_from_this();
}

HttpIntake::Taken HttpThreads::Answer::Take(std::string_view bytes) {
  if (!judged_) return Taken::kNotNow;
  return intake_ ? intake_->Take(bytes) : Taken::kEnough;
}

void HttpThreads::Answer::End(const HttpEnd& end) {
  const auto self = shared_from_this();
  intake_.reset();  // before its sink hears of the end
  thread_.Forget(id_);
  thread_.Tell([id = id_, end](HttpThreads& owner) { owner.Ended(id, end); });
}

HttpThreads::HttpThreads(asio::io_context& loop, HttpOptions options, int most)
    : loop_(loop), options_(std::move(options)), most_(static_cast<size_t>(std::max(most, 1))) {}

HttpThreads::~HttpThreads() = default;

HttpThreads::Thread& HttpThreads::Idlest() {
  const auto idlest = std::min_element(threads_.begin(), threads_.end(),
                                       [](const auto& a, const auto& b) { return a->busy < b->busy; });
  if (idlest != threads_.end() && ((*idlest)->busy == 0 || threads_.size() == most_)) return **idlest;
  return *threads_.emplace_back(std::make_unique<Thread>(*this));
}

HttpTransport::Id HttpThreads::Start(const HttpRequest& request, const HttpLimits& limits, HttpSink& sink) {
  Thread& thread = Idlest();
  const Id id = ++last_;
  asked_.emplace(id, Asked{&thread, &sink});
  thread.Start(id, request, limits);
  return id;
}

void HttpThreads::Resume(Id id) {
  auto found = asked_.find(id);
  if (found != asked_.end()) found->second.thread->With(id, [](Answer& answer) { answer.Resume(); });
}

void HttpThreads::Cancel(Id id) {
  auto found = asked_.find(id);
  if (found == asked_.end()) return;
  Thread& thread = *found->second.thread;
  asked_.erase(found);
  --thread.busy;
  thread.With(id, [](Answer& answer) { answer.Cancel(); });
}

void HttpThreads::Heard(Id id, const HttpHead& head) {
  const auto found = asked_.find(id);
  if (found == asked_.end()) return;  // cancelled meanwhile
  Thread& thread = *found->second.thread;
  auto intake = found->second.sink->Head(head);
  thread.With(id, [intake = std::move(intake)](Answer& answer) mutable { answer.Judged(std::move(intake)); });
}

void HttpThreads::Ended(Id id, const HttpEnd& end) {
  auto ended = asked_.extract(id);
  if (ended.empty()) return;
  --ended.mapped().thread->busy;
  ended.mapped().sink->End(end);
}

}  // namespace muster::initializers
