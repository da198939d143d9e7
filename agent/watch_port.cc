// SPDX-License-Identifier: Apache-2.0
#include "agent/watch_port.h"

#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <fstream>
#include <utility>

#include "agent/inner_status.h"
#include "agent/page_access.h"
#include "agent/probe/status_inquiry.h"
#include "agent/probe/status_waits.h"
#include "agent/viewers.h"
#include "base/environment.h"
#include "base/host_fs.h"
#include "base/host_names.h"
#include "base/log.h"
#include "base/text.h"
#include "base/version.h"

namespace muster::agent {
namespace {

// Less than the 10 s that a scraper waits by default and that http::Server allows.
constexpr auto kInquiryLimit = std::chrono::seconds(3);
constexpr int64_t kLongestWait = 60;  // seconds that a request of /status may wait for news
constexpr auto kLongestAnswer = std::chrono::seconds(kLongestWait + 10);
constexpr Duration kLooks = std::chrono::seconds(3);             // who looks asks once a second
constexpr Duration kLastBytes = std::chrono::milliseconds(100);  // until what was written last is sent

http::Server::Response Plain(int status, std::string text) {
  return {status, "text/plain; charset=utf-8", std::move(text) + "\n"};
}

// `process`: the facts that are known since the start of this process.
ProcessMetrics LookAtProcess(ProcessMetrics process) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * time.tv_usec; };
  process.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  if (statm >> pages >> resident) process.resident_bytes = resident * sysconf(_SC_PAGESIZE);
  return process;
}

http::Server::Handler Always(std::string text) {
  return [text = std::move(text)](const http::Server::Request&, const http::Server::Answer& answer) {
    answer(Plain(200, text));
  };
}

// What the page tells a reader to type.
LiveOptions LookCloser(const RunOptions& options) {
  constexpr std::string_view kNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
  LiveOptions closer;
  // A reader of the page may be in another folder.
  if (const std::string logs = options.logs.Folder(); !logs.empty()) {
    std::error_code ignored;
    closer.log_dir = std::filesystem::absolute(logs, ignored).lexically_normal();
  }
  closer.kube_namespace = HostFs().ReadLine(kNamespaceFile).value_or("");
  closer.is_indexed = Environment::OfProcess().NonBlank("JOB_COMPLETION_INDEX").has_value();
  closer.machine = HostName();
  return closer;
}

// nullptr: no port is wanted, or the user did not name one and it cannot be opened.
StatusOr<std::unique_ptr<http::Server>> OpenPort(boost::asio::io_context& loop, const HttpListen& wanted,
                                                 http::Server::Routes routes) {
  if (!wanted.on) return nullptr;
  std::string paths;
  for (const auto& [path, route] : routes) paths += (paths.empty() ? "" : ", ") + path;
  auto port = http::Server::Listen(loop, wanted.host, static_cast<uint16_t>(wanted.port), std::move(routes), {});
  if (!port.ok()) {
    if (wanted.required) return Annotate(port.status(), wanted.origin);
    log::Warning(fmt::format("cannot serve {}: {}; --http-port=off turns the port off", paths, Message(port.status())));
    return nullptr;
  }
  const std::string where =
      fmt::format("{} on {}port {}", paths, wanted.host.empty() ? "" : wanted.host + " ", (*port)->port());
  wanted.port == 0 ? log::Info(where) : log::Debug(where);  // who named the port knows it
  return port;
}

}  // namespace

class WatchPort::Impl {
 public:
  Impl(boost::asio::io_context& loop, const RunOptions& options, WatchSources sources)
      : loop_(loop),
        options_(options),
        sources_(std::move(sources)),
        ledger_({options.job.run_id, options.job.shared}),
        inquiry_(loop, options.job.run_id),
        telemetry_inquiry_(loop, options.job.run_id, true),
        waits_(loop, options.job.run_id),
        inner_(loop),
        farewell_timer_(loop),
        viewers_(loop, options.job.run_id, LookCloser(options), inner_,
                 {.attended = sources_.attended,
                  .own = [this] { return ledger_.OwnView(); },
                  .job = options.job.name,
                  .version = std::string(Version())}) {
    process_.started_unix_ms = UnixMillis();
  }

  Status Open() {
    http::Server::Routes routes;
    routes["/healthz"].handler = Always("ok");
    routes["/readyz"].handler = [this](const http::Server::Request&, const http::Server::Answer& answer) {
      std::string why_not = ledger_.NotReady();
      answer(why_not.empty() ? Plain(200, "ok") : Plain(503, OneLine(why_not)));
    };
    routes["/metrics"].handler = [this](const http::Server::Request&, const http::Server::Answer& answer) {
      answer({200, std::string(kExpositionType), ToExposition(Look())});
    };
    routes["/status"].handler = [this](const http::Server::Request& request, const http::Server::Answer& answer) {
      if (ValueOf(request.query, '&', "ranks=") != "1") return AnswerStatus(request.query, answer);
      if (!JudgeAccess(request, token_).allowed) return answer(NeedsToken());
      looked_at_ = MonotonicClock::now();
      AnswerStatus(request.query, [this, answer](http::Server::Response response) {
        answer(std::move(response));
        knows_end_ = ledger_.decided();
        // Not again for those who ask faster than that: they must not keep the process.
        if (farewell_ && farewell_timer_.expiry() > MonotonicClock::now() + kLastBytes) EndFarewell(kLastBytes);
      });
    };
    routes["/status"].answer = kLongestAnswer;
    if (options_.http.on) AddPage(routes);
    if (!options_.http.on) return OpenInside(routes["/status"]);
    if (!options_.http.token_file.empty()) {
      auto read = net::ReadCredentials({.token = options_.http.token_file});
      if (!read.ok()) return Annotate(read.status(), options_.http.token_origin);
      token_ = read->token;
    }
    MUSTER_ASSIGN_OR_RETURN(port_, OpenPort(loop_, options_.http, std::move(routes)));
    // An agent inside knows more than this one.
    if (options_.wire == Wire::kPlain) inner_.Begin([this] { waits_.EndAll(); });
    return absl::OkStatus();
  }

  void StoreGoes(const store::StoreServer& store) {
    store::StoreCounters counters = store.counters();
    past_.operations += counters.operations;
    past_.accepted += counters.accepted;
    past_.violations += counters.violations;
    had_store_ = true;
  }

  RoundLedger& ledger() { return ledger_; }
  RunTime TimeOfRun() const { return {process_.started_unix_ms, ledger_.MetricsAt(MonotonicClock::now()).spent}; }

  void Farewell(Duration limit, std::function<void()> done) {
    const bool polls = looked_at_ && MonotonicClock::now() - *looked_at_ < kLooks;
    const bool watched = viewers_.End(Sentence({.report = ledger_.OwnView()}));
    if (port_ == nullptr || (!polls && !watched)) return done();
    farewell_ = std::move(done);
    EndFarewell(polls && !knows_end_ ? limit : kLastBytes);
  }

 private:
  void EndFarewell(Duration after) {
    farewell_timer_.expires_after(after);
    farewell_timer_.async_wait([this](const boost::system::error_code& error) {
      if (const auto done = error ? nullptr : std::exchange(farewell_, nullptr)) done();
    });
  }

  static std::string OneLine(std::string text) {
    for (char& c : text) {
      if (static_cast<unsigned char>(c) < ' ') c = ' ';
    }
    return text;
  }

  Metrics Look() const {
    Metrics metrics = ledger_.MetricsAt(MonotonicClock::now());
    metrics.version = Version();
    metrics.commit = Commit();
    metrics.workers_running = sources_.workers_running();
    metrics.standby_workers = sources_.standbys_ready();
    metrics.first_output_seconds = sources_.first_output_seconds();
    metrics.process = LookAtProcess(process_);
    const store::StoreServer* store = sources_.store();
    if (store != nullptr || had_store_) metrics.store = past_;
    if (store != nullptr) {
      store::StoreCounters now = store->counters();
      metrics.store->operations += now.operations;
      metrics.store->accepted += now.accepted;
      metrics.store->violations += now.violations;
      metrics.store->connections = now.open;
    }
    return metrics;
  }

  // Serves /status for the agent around this one, if there is one.
  Status OpenInside(http::Server::Route status) {
    const auto path = Environment::OfProcess().NonBlank(kStatusFileVariable);
    if (!path || options_.wire == Wire::kPlain) return absl::OkStatus();
    auto port = http::Server::Listen(loop_, "127.0.0.1", 0, {{"/status", std::move(status)}}, {});
    auto file = port.ok() ? StatusFile::Write(*path, (*port)->port()) : port.status();
    if (!file.ok()) {
      log::Debug(fmt::format("the agent around this one cannot tell of its rounds: {}", Message(file.status())));
      return absl::OkStatus();
    }
    port_ = *std::move(port);
    file_ = *std::move(file);
    return absl::OkStatus();
  }

  // False: no agent inside the command serves its status.
  bool PassInside(const std::string& query, const http::Server::Answer& answer) {
    return inner_.Ask(query.empty() ? "/status" : "/status?" + query, kLongestAnswer,
                      [this, answer](const StatusOr<FetchAnswer>& inside) {
                        if (!inside.ok()) return SendStatus("", answer);
                        answer({inside->status, "application/json", inside->body});
                      });
  }

  void AnswerStatus(const std::string& query, const http::Server::Answer& answer) {
    if (options_.wire != Wire::kPlain || !PassInside(query, answer)) SendStatus(query, answer);
  }

  void AddPage(http::Server::Routes& routes) {
    routes["/"].handler = [this](const http::Server::Request& request, const http::Server::Answer& answer) {
      const PageAccess access = JudgeAccess(request, token_);
      if (!access.allowed) return answer(NeedsToken());
      viewers_.Page([answer, cookie = access.cookie](http::Server::Response page) {
        if (!cookie.empty()) page.headers.emplace_back("Set-Cookie", cookie);
        answer(std::move(page));
      });
    };
    routes["/events"].handler = [this](const http::Server::Request& request, const http::Server::Answer& answer) {
      if (!JudgeAccess(request, token_).allowed) return answer(NeedsToken());
      viewers_.Events(request.query, answer);
    };
  }

  void SendStatus(std::string_view query, const http::Server::Answer& answer) {
    const std::string ranks(ValueOf(query, '&', "ranks="));
    auto send = [this, answer, ranks](const StatusOr<rendezvous::StatusReport>& report) {
      StatusAnswer facts{.source = report.ok() ? "coordinator" : "node",
                         .job = ranks == "1" ? std::string_view(options_.job.name) : "",
                         .muster = ranks == "1" ? std::string_view(version_) : "",
                         .standby_workers = sources_.standby_workers(),
                         .first_output_seconds = sources_.first_output_seconds(),
                         .training = sources_.training(),
                         .time = TimeOfRun()};
      if (!report.ok()) facts.source_reason = Message(report.status());
      answer({200, "application/json", StatusJson(report.ok() ? *report : ledger_.OwnView(), facts) + "\n"});
    };
    const Attended attended = sources_.attended();
    const std::string after(ValueOf(query, '&', "after=")), wait(ValueOf(query, '&', "wait="));
    if (!ranks.empty() && ranks != "0" && ranks != "1")
      return answer(Plain(400, fmt::format("ranks={}: want 0 or 1", ranks)));
    const std::string training(ValueOf(query, '&', "training="));
    if (!training.empty() && training != "0" && training != "1")
      return answer(Plain(400, fmt::format("training={}: want 0 or 1", training)));
    const auto seconds = wait.empty() ? 0 : ParseInt(wait);
    if (!seconds || *seconds < 0 || *seconds > kLongestWait) {
      return answer(Plain(400, fmt::format("wait={}: want whole seconds from 0 to {}", wait, kLongestWait)));
    }
    if (!attended.any) return send(absl::UnavailableError("this node has no coordinator now"));
    if (!after.empty() && *seconds > 0) {
      const auto is_news = [after](const rendezvous::StatusReport& report) { return VersionOf(report) != after; };
      return waits_.Begin(
          is_news, std::chrono::seconds(*seconds), attended.address, attended.local, *attended.credentials,
          kInquiryLimit,
          [this, send, answer, training](const std::optional<StatusOr<rendezvous::StatusReport>>& report) {
            if (report) return send(*report);
            if (training == "1") return SendStatus("", answer);
            answer({304, "application/json", ""});
          });
    }
    StatusInquiry& inquiry = ranks == "1" ? telemetry_inquiry_ : inquiry_;
    inquiry.Ask(attended.address, attended.local, *attended.credentials, kInquiryLimit, send);
  }

  boost::asio::io_context& loop_;
  const RunOptions& options_;
  const WatchSources sources_;
  RoundLedger ledger_;
  StatusInquiry inquiry_;
  StatusInquiry telemetry_inquiry_;
  StatusWaits waits_;
  InnerStatus inner_;
  std::optional<TimePoint> looked_at_;  // when somebody asked for the ranks last
  bool knows_end_ = false;              // the last answer about the ranks was given when the run had ended
  std::function<void()> farewell_;      // null: it has not begun, or is over
  boost::asio::steady_timer farewell_timer_;
  Viewers viewers_;
  const std::string version_{Version()};
  std::string token_;  // of the live page; empty: none
  ProcessMetrics process_;
  bool had_store_ = false;
  StoreMetrics past_;
  std::unique_ptr<http::Server> port_;
  std::unique_ptr<StatusFile> file_;  // names `port_`, which is for the agent around this one
};

WatchPort::WatchPort(boost::asio::io_context& loop, const RunOptions& options, WatchSources sources)
    : impl_(std::make_unique<Impl>(loop, options, std::move(sources))) {}
WatchPort::~WatchPort() = default;
Status WatchPort::Open() { return impl_->Open(); }
void WatchPort::Farewell(Duration limit, std::function<void()> done) { impl_->Farewell(limit, std::move(done)); }
RoundLedger& WatchPort::ledger() { return impl_->ledger(); }
RunTime WatchPort::TimeOfRun() const { return impl_->TimeOfRun(); }
void WatchPort::StoreGoes(const store::StoreServer& store) { impl_->StoreGoes(store); }

StatusOr<std::unique_ptr<http::Server>> WatchServer(boost::asio::io_context& loop, const HttpListen& wanted,
                                                    rendezvous::Coordinator* coordinator) {
  http::Server::Routes routes;
  routes["/healthz"].handler = routes["/readyz"].handler = Always("ok");
  ProcessMetrics process;
  process.started_unix_ms = UnixMillis();
  routes["/metrics"].handler = [process](const http::Server::Request&, const http::Server::Answer& answer) {
    answer({200, std::string(kExpositionType), ToExposition(Version(), Commit(), LookAtProcess(process))});
  };
  if (coordinator == nullptr) return OpenPort(loop, wanted, std::move(routes));
  routes["/status"].handler = [&loop, coordinator](const http::Server::Request& request,
                                                   const http::Server::Answer& answer) {
    auto inquiry = std::make_shared<StatusInquiry>(loop, std::string(ValueOf(request.query, '&', "run_id=")));
    inquiry->Ask("", coordinator, {}, kInquiryLimit,
                 [inquiry, answer](const StatusOr<rendezvous::StatusReport>& report) {
                   if (!report.ok()) return answer(Plain(404, std::string(Message(report.status()))));
                   answer({200, "application/json", StatusJson(*report, {.source = "coordinator"}) + "\n"});
                 });
  };
  return OpenPort(loop, wanted, std::move(routes));
}

}  // namespace muster::agent
