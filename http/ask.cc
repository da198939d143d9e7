// SPDX-License-Identifier: Apache-2.0
#include "http/ask.h"

#include "base/text.h"

namespace muster::http {
namespace {

class Asking final : public Sink {
 public:
  Asking(Client& client, size_t limit, Answered answered)
      : cancel_(client.Canceller()), body_(std::make_shared<Body>(limit)), answered_(std::move(answered)) {}
  ~Asking() override {
    if (id_ != 0) cancel_(id_);
  }
  void Begin(Client& client, const Request& request, const Limits& limits) {
    head_only_ = request.head_only;
    id_ = client.Start(request, limits, *this);
  }

 private:
  struct Body final : Intake {
    explicit Body(size_t most) : limit(most) {}
    Taken Take(std::string_view bytes) override {
      too_long = too_long || text.size() + bytes.size() > limit;
      if (!too_long) text += bytes;  // drop the rest but read it, so that the connection stays usable
      return Taken::kAll;
    }
    const size_t limit;
    std::string text;
    bool too_long = false;
  };

  std::shared_ptr<Intake> Head(const ResponseHead& head) override {
    answer_.head = head;
    const bool wanted = !head_only_ || head.ContentLength().value_or(SIZE_MAX) <= body_->limit;
    return wanted ? body_ : nullptr;
  }
  void End(const TransferEnd& end) override {
    id_ = 0;
    answer_.body = std::move(body_->text);
    answer_.end = end.kind == TransferEnd::Kind::kRefused ? TransferEnd{} : end;  // refused only for the body's length
    if (body_->too_long && end.kind == TransferEnd::Kind::kWhole) {
      answer_.end = {TransferEnd::Kind::kInvalid, fmt::format("the answer is longer than {} bytes", body_->limit)};
    }
    answered_(std::move(answer_));
  }

  const std::function<void(Client::Id)> cancel_;
  const std::shared_ptr<Body> body_;
  Answered answered_;
  Client::Id id_ = 0;
  Answer answer_;
  bool head_only_ = false;
};

}  // namespace

std::shared_ptr<void> Ask(Client& client, const Request& request, const Limits& limits, size_t limit,
                          Answered answered) {
  auto asking = std::make_shared<Asking>(client, limit, std::move(answered));
  asking->Begin(client, request, limits);
  return asking;
}

}  // namespace muster::http
