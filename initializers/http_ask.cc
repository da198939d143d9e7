#include "base/text.h"
#include "initializers/http.h"

namespace muster::initializers {
namespace {

class Asking final : public HttpSink {
 public:
  Asking(HttpClient& client, size_t limit, HttpAnswered answered)
      : cancel_(client.Canceller()), limit_(limit), answered_(std::move(answered)) {}
  ~Asking() override {
    if (id_ != 0) cancel_(id_);
  }
  void Begin(HttpClient& client, const HttpRequest& request, const HttpLimits& limits) {
    head_only_ = request.head_only;
    id_ = client.Start(request, limits, *this);
  }

 private:
  bool Head(const HttpHead& head) override {
    answer_.head = head;
    return !head_only_ || head.ContentLength().value_or(SIZE_MAX) <= limit_;
  }
  bool Body(std::string_view bytes) override {
    too_long_ = too_long_ || answer_.body.size() + bytes.size() > limit_;
    if (!too_long_) answer_.body += bytes;  // the rest is read and dropped, so that the connection can be kept
    return true;
  }
  void End(const HttpEnd& end) override {
    id_ = 0;
    answer_.end = end.kind == HttpEnd::Kind::kRefused ? HttpEnd{} : end;  // only for its length
    if (too_long_ && end.kind == HttpEnd::Kind::kWhole) {
      answer_.end = {HttpEnd::Kind::kInvalid, fmt::format("the answer is longer than {} bytes", limit_)};
    }
    answered_(std::move(answer_));
  }

  const std::function<void(HttpClient::Id)> cancel_;
  const size_t limit_;
  HttpAnswered answered_;
  HttpClient::Id id_ = 0;
  HttpAnswer answer_;
  bool head_only_ = false;
  bool too_long_ = false;
};

}  // namespace

std::shared_ptr<void> Ask(HttpClient& client, const HttpRequest& request, const HttpLimits& limits, size_t limit,
                          HttpAnswered answered) {
  auto asking = std::make_shared<Asking>(client, limit, std::move(answered));
  asking->Begin(client, request, limits);
  return asking;
}

}  // namespace muster::initializers
