// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/api_client.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <random>
#include <utility>

#include "base/text.h"
#include "controller/kube/client/credentials.h"
#include "controller/kube/client/token_bucket.h"
#include "controller/kube/client/watch_frames.h"
#include "controller/kube/client/watch_lines.h"
#include "http/ask.h"
#include "http/client.h"
#include "http/refusal.h"

namespace muster::controller {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr char kJson[] = "application/json";
constexpr char kJsonOrProtobuf[] = "application/vnd.kubernetes.protobuf, application/json";
constexpr char kMergePatch[] = "application/merge-patch+json";
constexpr char kApplyPatch[] = "application/apply-patch+yaml";  // JSON is YAML
constexpr int kDeepest = 200;                                   // levels of an object; deeper ones are dropped
constexpr size_t kLongestRefusal = size_t{64} << 10;            // bytes of an error's body
constexpr Duration kHead = std::chrono::seconds(65);            // an API server limits a request to 60 s
constexpr Duration kTotal = std::chrono::seconds(300);          // for the longest page
constexpr Duration kDeadPeer = std::chrono::seconds(30);        // a server that vanished without closing
constexpr int kBuffer = 64 << 10;                               // bytes, per busy connection
constexpr int kShortestWatch = 300, kLongestWatch = 600;        // s

// Of a single object, nothing else is left out: a pod is made from the template of its Job.
constexpr JsonPlace kManagedFields[] = {{"managedFields", 2}};

// The request of one call. `kind`: of a write, for Counts::writes_by_kind; empty: no write.
struct Asked {
  std::string method = "GET", path, query, content_type, body, kind;
  LeftOut unread{kManagedFields};  // members of the answer that are not stored
  bool watch = false;
  bool protobuf = false;  // asked for; the server may answer in JSON
  bool paced = true;      // a write that the token bucket limits
  bool write() const { return !kind.empty(); }
  std::string what() const { return fmt::format("{} {}", method, path); }
};

// Leases are not limited: a renewal behind many other writes would be late, and the leader would lose its Lease.
bool IsPaced(const Resource& resource) { return resource.plural != "leases"; }

// One object, or all objects of a kind.
struct Target {
  const Resource& resource;
  std::string_view ns, name = {}, subresource = {};
};

Encoding EncodingOfAnswer(const http::ResponseHead& head) { return EncodingOf(head.Find("content-type").value_or("")); }

// The state that all calls share.
struct Context {
  Context(asio::io_context& its_loop, ClusterAccess its_access, ApiClient::Options its_options)
      : loop(its_loop),
        access(std::move(its_access)),
        options(std::move(its_options)),
        credentials(loop, access),
        bucket(options.writes_per_second, options.burst),
        random(std::random_device{}()) {}

  // The HTTP client for this client certificate. A new certificate makes a new client; calls keep the old one alive.
  std::shared_ptr<http::Client> HttpFor(const Credential& credential);

  asio::io_context& loop;
  const ClusterAccess access;
  const ApiClient::Options options;
  Credentials credentials;
  TokenBucket bucket;
  ApiClient::Counts counts;
  std::mt19937 random;
  std::shared_ptr<http::Client> http;
};

// `verb`: for the counts.
Asked Write(const Context& context, std::string_view verb, const char* method, const Target& target,
            const char* content_type, const Json& body) {
  const auto& [resource, ns, name, subresource] = target;
  return {.method = method,
          .path = PathOf(resource, ns, name, subresource),
          .query = fmt::format("fieldManager={}", context.options.field_owner),
          .content_type = content_type,
          .body = WriteJson(body),
          .kind = fmt::format("{} {}{}{}", verb, resource.plural, subresource.empty() ? "" : "/", subresource),
          .paced = IsPaced(resource)};
}

std::shared_ptr<http::Client> Context::HttpFor(const Credential& credential) {
  if (http && http->options().client_certificate == credential.client_certificate &&
      http->options().client_key == credential.client_key) {
    return http;
  }
  http::Options how;
  how.ca_pem = access.ca_pem;
  how.ca_remedy = "give the cluster's own authority: certificate-authority-data in the kubeconfig";
  how.client_certificate = credential.client_certificate;
  how.client_key = credential.client_key;
  how.verify_tls = access.verify_tls;
  how.proxies = access.proxies;
  how.user_agent = options.user_agent;
  how.dead_peer = kDeadPeer;
  how.connections = options.connections;
  how.buffer = kBuffer;
  return http = std::make_shared<http::Client>(loop, std::move(how));
}

// One call, from its turn in the token bucket to its last callback. It goes on while its handle exists.
class Call : public std::enable_shared_from_this<Call>, private http::Sink {
 public:
  Call(const std::shared_ptr<Context>& context, Asked asked, ApiClient::Done done, ApiClient::WatchEvents events)
      : context_(context),
        loop_(context->loop),
        timer_(context->loop),
        lines_(context->options.longest_line),
        frames_(context->options.longest_line),
        asked_(std::move(asked)),
        done_(std::move(done)),
        events_(std::move(events)) {}
  ~Call() override { Stop(); }

  void Begin(Duration turn) {
    began_ = MonotonicClock::now();
    After(turn, &Call::Authorize);
  }
  void Cancel() {
    over_ = true;
    Stop();
  }

 private:
  // Collects the bytes of a watch in a callback of libcurl, where libcurl must not be called. Tell delivers them later.
  class Body final : public http::Intake {
   public:
    Body(asio::io_context& loop, std::weak_ptr<Call> call) : loop_(loop), call_(std::move(call)) {}
    Taken Take(std::string_view bytes) override {
      bytes_ += bytes;
      if (!std::exchange(told_, true)) {
        asio::post(loop_, [call = call_] {
          if (auto held = call.lock()) held->DeliverLines();
        });
      }
      return Taken::kAll;
    }
    std::string Give() {
      told_ = false;
      return std::exchange(bytes_, {});
    }

   private:
    asio::io_context& loop_;
    const std::weak_ptr<Call> call_;
    std::string bytes_;
    bool told_ = false;
  };
  class Refusal final : public http::Intake {
   public:
    Taken Take(std::string_view bytes) override {
      text.append(bytes.substr(0, kLongestRefusal - text.size()));
      return Taken::kAll;
    }
    std::string text;
  };

  void After(Duration pause, void (Call::*next)()) {
    timer_.expires_after(pause);
    timer_.async_wait([weak = weak_from_this(), next](error_code error) {
      auto self = weak.lock();
      if (!error && self && !self->over_) (self.get()->*next)();
    });
  }

  void Authorize() {
    const auto context = context_.lock();
    if (!context) return;
    context->credentials.Get([weak = weak_from_this()](const StatusOr<Credential>& credential) {
      auto self = weak.lock();
      if (!self || self->over_) return;
      if (!credential.ok()) return self->Finish(Annotate(credential.status(), self->asked_.what()));
      self->Send(*credential);
    });
  }

  void Send(const Credential& credential) {
    const auto context = context_.lock();
    if (!context) return;
    used_ = credential;
    client_ = context->HttpFor(credential);
    http::Request request;
    request.method = asked_.method;
    request.url =
        fmt::format("{}{}{}{}", context->access.server, asked_.path, asked_.query.empty() ? "" : "?", asked_.query);
    request.headers.emplace_back("Accept", asked_.protobuf ? kJsonOrProtobuf : kJson);
    if (!asked_.content_type.empty()) request.headers.emplace_back("Content-Type", asked_.content_type);
    if (!credential.authorization.empty()) request.headers.emplace_back("Authorization", credential.authorization);
    request.body = asked_.body;
    request.fresh = resent_;
    if (asked_.watch) {
      transfer_ = client_->Start(request, http::WatchLimits(std::chrono::seconds(kLongestWatch + 60)), *this);
      return;
    }
    const http::Limits limits{.silence = {}, .head = kHead, .total = kTotal};
    asking_ = http::Ask(*client_, request, limits, context->options.longest_answer,
                        [weak = weak_from_this()](const http::Answer& answer) {
                          auto self = weak.lock();
                          if (!self || self->over_) return;
                          // The conversation, which calls this, must outlive the call.
                          asio::post(self->loop_, [asking = std::move(self->asking_)] {});
                          self->Ended(answer.head, answer.body, answer.end);
                        });
  }

  std::shared_ptr<http::Intake> Head(const http::ResponseHead& head) override {
    head_ = head;
    if (head.status == 200) return body_ = std::make_shared<Body>(loop_, weak_from_this());
    return refusal_ = std::make_shared<Refusal>();
  }
  void End(const http::TransferEnd& end) override {
    const auto self = shared_from_this();
    transfer_ = 0;
    DeliverLines();
    if (over_) return;
    const auto refusal = std::exchange(refusal_, nullptr);
    body_.reset();
    Ended(head_, refusal ? refusal->text : "", end);
  }
  // Delivers the lines that are complete.
  void DeliverLines() {
    if (over_ || !body_) return;
    const auto self = shared_from_this();
    const std::string bytes = body_->Give();
    const Encoding encoding = EncodingOfAnswer(head_);
    const auto deliver = [this, encoding](std::string_view line, bool whole) {
      events_.line(line, whole, encoding);
      return !over_;
    };
    switch (encoding) {
      case Encoding::kJson:
        return lines_.Take(bytes, deliver);
      case Encoding::kProtobuf:
        return frames_.Take(bytes, deliver);
    }
  }

  void Ended(const http::ResponseHead& head, const std::string& body, const http::TransferEnd& end) {
    const auto context = context_.lock();
    if (!context) return;
    const std::string what = asked_.what();
    if (end.kind == http::TransferEnd::Kind::kCut && head.status == 0 && MayResend()) {
      resent_ = true;
      return After(Duration::zero(), &Call::Authorize);
    }
    if (end.kind != http::TransferEnd::Kind::kWhole) return Finish(http::RefusalOf(end, what).status);
    if (head.status >= 200 && head.status < 300) {
      if (asked_.watch || body.empty()) return Finish(Json());
      return Finish(Read(head, body, what));
    }
    if (head.status == 401 && !renewed_ && context->credentials.Refused(used_)) {
      renewed_ = true;
      return After(Duration::zero(), &Call::Authorize);
    }
    if (head.status == 429 || head.status == 503) {
      ++context->counts.throttled;
      const auto pause = http::AskedBy(head, UnixSeconds());
      if (pause && MonotonicClock::now() + *pause - began_ <= context->options.patience) {
        return After(*pause, &Call::Authorize);
      }
    }
    Finish(ErrorOf(head.status, body, what));
  }

  StatusOr<Json> Read(const http::ResponseHead& head, const std::string& body, const std::string& what) const {
    if (EncodingOfAnswer(head) == Encoding::kProtobuf) {
      auto object = ProtobufAsJson(body);
      if (object.ok()) return object;
      return absl::FailedPreconditionError(fmt::format("{}: the answer: {}", what, Message(object.status())));
    }
    Json json = ReadJsonTop(body, kDeepest, asked_.unread);
    if (!json.is_discarded()) return json;
    return absl::FailedPreconditionError(fmt::format("{}: the answer is not JSON", what));
  }

  // True if a call whose connection ended without an answer may be sent once more, on a new connection. A server that
  // restarts or is overloaded closes many: a Lease could be lost. No POST is resent: the first may have succeeded.
  bool MayResend() const { return !resent_ && !asked_.watch && asked_.method != "POST"; }

  void Finish(StatusOr<Json> result) {
    const auto self = shared_from_this();
    over_ = true;
    Stop();
    if (auto context = context_.lock(); context && !result.ok()) ++context->counts.failed;
    if (asked_.watch) return events_.end(result.status());
    done_(std::move(result));
  }
  void Stop() {
    timer_.cancel();
    asking_.reset();
    if (transfer_ != 0) client_->Cancel(std::exchange(transfer_, 0));
  }

  const std::weak_ptr<Context> context_;
  asio::io_context& loop_;
  asio::steady_timer timer_;
  WatchLines lines_;  // one of the two splits a watch: the answer's encoding decides
  WatchFrames frames_;
  const Asked asked_;
  const ApiClient::Done done_;
  const ApiClient::WatchEvents events_;
  TimePoint began_;
  bool over_ = false, renewed_ = false, resent_ = false;
  Credential used_;
  std::shared_ptr<http::Client> client_;  // outlives its transfers
  std::shared_ptr<void> asking_;
  http::Client::Id transfer_ = 0;
  http::ResponseHead head_;
  std::shared_ptr<Body> body_;
  std::shared_ptr<Refusal> refusal_;
};

}  // namespace

class ApiClient::Impl final : public Context {
 public:
  using Context::Context;
};

namespace {

ApiClient::Handle Begin(const std::shared_ptr<Context>& context, Asked asked, ApiClient::Done done,
                        ApiClient::WatchEvents events = {}) {
  Duration turn{};
  if (asked.write()) {
    ++context->counts.writes;
    ++context->counts.writes_by_kind[asked.kind];
    if (asked.paced) turn = context->bucket.Take(MonotonicClock::now());
  } else {
    ++(asked.watch ? context->counts.watches : context->counts.reads);
  }
  auto call = std::make_shared<Call>(context, std::move(asked), std::move(done), std::move(events));
  call->Begin(turn);
  return ApiClient::Handle(call.get(), [call](void*) { call->Cancel(); });
}

}  // namespace

ApiClient::ApiClient(asio::io_context& loop, ClusterAccess access, Options options)
    : impl_(std::make_shared<Impl>(loop, std::move(access), std::move(options))) {}
ApiClient::~ApiClient() = default;

ApiClient::Handle ApiClient::Get(const Resource& resource, std::string_view ns, std::string_view name, Done done) {
  return Begin(impl_, {.path = PathOf(resource, ns, name)}, std::move(done));
}

ApiClient::Handle ApiClient::List(const Resource& resource, std::string_view ns, std::string_view query, Done done) {
  return Begin(impl_,
               {.path = PathOf(resource, ns),
                .query = std::string(query),
                .unread = UnreadOf(resource, 2),
                .protobuf = IsInProtobuf(resource)},
               std::move(done));
}

ApiClient::Handle ApiClient::Create(const Resource& resource, std::string_view ns, const Json& object, Done done) {
  return Begin(impl_, Write(*impl_, "create", "POST", {resource, ns}, kJson, object), std::move(done));
}

ApiClient::Handle ApiClient::TryCreate(const Resource& resource, std::string_view ns, const Json& object, Done done) {
  Asked asked = Write(*impl_, "try", "POST", {resource, ns}, kJson, object);
  asked.query += "&dryRun=All";
  return Begin(impl_, std::move(asked), std::move(done));
}

ApiClient::Handle ApiClient::Apply(const Resource& resource, std::string_view ns, std::string_view name,
                                   std::string_view subresource, const Json& object, Done done) {
  Asked asked = Write(*impl_, "apply", "PATCH", {resource, ns, name, subresource}, kApplyPatch, object);
  asked.query += "&force=true";
  return Begin(impl_, std::move(asked), std::move(done));
}

ApiClient::Handle ApiClient::ApplyAs(std::string_view owner, const Resource& resource, std::string_view ns,
                                     std::string_view name, std::string_view subresource, const Json& object,
                                     Done done) {
  Asked asked = Write(*impl_, "apply", "PATCH", {resource, ns, name, subresource}, kApplyPatch, object);
  asked.query = fmt::format("fieldManager={}", owner);
  return Begin(impl_, std::move(asked), std::move(done));
}

ApiClient::Handle ApiClient::Merge(const Resource& resource, std::string_view ns, std::string_view name,
                                   std::string_view subresource, const Json& patch, Done done) {
  return Begin(impl_, Write(*impl_, "patch", "PATCH", {resource, ns, name, subresource}, kMergePatch, patch),
               std::move(done));
}

ApiClient::Handle ApiClient::Replace(const Resource& resource, std::string_view ns, std::string_view name,
                                     const Json& object, Done done) {
  return Begin(impl_, Write(*impl_, "replace", "PUT", {resource, ns, name}, kJson, object), std::move(done));
}

ApiClient::Handle ApiClient::Delete(const Resource& resource, std::string_view ns, std::string_view name,
                                    std::string_view uid, Grace grace, Done done) {
  Json how = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Background"}};
  if (!uid.empty()) how["preconditions"] = {{"uid", uid}};
  if (grace == Grace::kNone) how["gracePeriodSeconds"] = 0;
  Asked asked = Write(*impl_, "delete", "DELETE", {resource, ns, name}, kJson, how);
  asked.query.clear();  // a deletion has no fieldManager
  return Begin(impl_, std::move(asked), std::move(done));
}

ApiClient::Handle ApiClient::Watch(const Resource& resource, std::string_view ns, std::string_view query,
                                   WatchEvents events) {
  const int seconds = std::uniform_int_distribution<int>(kShortestWatch, kLongestWatch)(impl_->random);
  return Begin(impl_,
               {.path = PathOf(resource, ns),
                .query = fmt::format("watch=true&allowWatchBookmarks=true&timeoutSeconds={}{}{}", seconds,
                                     query.empty() ? "" : "&", query),
                .watch = true,
                .protobuf = IsInProtobuf(resource)},
               {}, std::move(events));
}

const ApiClient::Counts& ApiClient::counts() const { return impl_->counts; }

}  // namespace muster::controller
