// SPDX-License-Identifier: Apache-2.0
#include "controller/commands.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/folder_watch.h"
#include "base/host_names.h"
#include "base/log.h"
#include "base/print.h"
#include "base/replace_file.h"
#include "base/settings_file.h"
#include "base/text.h"
#include "base/version.h"
#include "controller/api/labels.h"
#include "controller/command_line.h"
#include "controller/health.h"
#include "controller/input_file.h"
#include "controller/kube/client/api_client.h"
#include "controller/kube/client/cluster_access.h"
#include "controller/kube/jobs/event_recorder.h"
#include "controller/kube/jobs/leader.h"
#include "controller/kube/jobs/master_key.h"
#include "controller/kube/jobs/pytorch_jobs.h"
#include "controller/kube/jobs/runtime_cache.h"
#include "controller/kube/jobs/train_jobs.h"
#include "controller/kube/webhook/certificate_folder.h"
#include "controller/kube/webhook/metrics_server.h"
#include "controller/kube/webhook/own_certificates.h"
#include "controller/kube/webhook/status_server.h"
#include "controller/kube/webhook/webhooks.h"
#include "http/server_tls.h"

namespace muster::controller {
namespace {

namespace asio = boost::asio;

// Kubeflow Trainer's name: the two controllers never act at once.
constexpr char kLease[] = "trainer.kubeflow.org";

struct Flags {
  std::string kubeconfig, context, ns, agent_image = UsualAgentImage();
  std::string listen = ":8081", metrics_listen, webhook_listen, webhook_cert_dir, webhook_client_ca, status_listen,
              lease_namespace, log_level = "info", log_format = "text";
  bool leader_elect = true, serve_pytorch_jobs = false, webhook_trust_clients = false;
  std::string pytorch_restart = "pod", wait_template_file;
  PyTorchOptions pytorch;
  double writes_per_second = 500;
  int burst = 1000, workers = 32;
};

void Declare(CLI::App& app, Flags* flags) {
  app.add_option("--kubeconfig", flags->kubeconfig,
                 "file that says how to reach the cluster; else $KUBECONFIG, the pod's service account, ~/.kube/config")
      ->type_name("FILE");
  app.add_option("--context", flags->context, "context of the kubeconfig; else its current context");
  app.add_option("--namespace", flags->ns, "serve this namespace alone; else all of them");
  app.add_option("--agent-image", flags->agent_image, "image of the init container that brings the agent")
      ->envname("MUSTER_AGENT_IMAGE")
      ->capture_default_str();
  app.add_option("--listen", flags->listen, "[HOST]:PORT of /healthz, /readyz and /metrics")->capture_default_str();
  app.add_option("--metrics-listen", flags->metrics_listen,
                 "[HOST]:PORT of /metrics over HTTPS, such as :8443, for clients whom the API server allows it; "
                 "--listen then does not serve it. It has the webhooks' certificate");
  app.add_option("--webhook-listen", flags->webhook_listen,
                 "[HOST]:PORT of the admission webhooks, such as :9443; else there are none");
  app.add_option("--webhook-cert-dir", flags->webhook_cert_dir,
                 "folder with tls.crt and tls.key of the webhooks; else muster-controller makes certificates and "
                 "writes the caBundles")
      ->type_name("DIR");
  app.add_option("--webhook-client-ca", flags->webhook_client_ca,
                 "PEM file with the authority of the API servers' client certificates: the webhooks then serve nobody "
                 "else. Without it reviews say nothing about the objects of a namespace (docs/security.md)")
      ->type_name("FILE");
  app.add_flag("--webhook-trust-clients", flags->webhook_trust_clients,
               "take each client of the webhooks for an API server, where the network lets no other one reach them");
  app.add_option("--status-listen", flags->status_listen,
                 "[HOST]:PORT of the status server, to which pods post their progress, such as :10443; else there is "
                 "none. It has the webhooks' certificate");
  app.add_flag("--serve-pytorchjobs", flags->serve_pytorch_jobs,
               "serve PyTorchJobs of kubeflow.org/v1, too; training-operator must not serve them at the same time");
  app.add_option("--pytorchjob-restart", flags->pytorch_restart,
                 "what restarts when a pod of a PyTorchJob without annotation muster.dev/restart fails: that pod, or "
                 "the whole job")
      ->check(CLI::IsMember({"pod", "job"}))
      ->capture_default_str();
  app.add_option("--pytorch-init-container-image", flags->pytorch.wait_image,
                 "image of the init container by which workers of a PyTorchJob wait for its master; it has a `muster`. "
                 "Else the agent's");
  app.add_option("--pytorch-init-container-max-tries", flags->pytorch.wait_tries,
                 "how often that container looks for the master, once in 2 s")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--pytorch-init-container-template-file", flags->wait_template_file,
                 "file with a YAML list of init containers to use instead, with {{.MasterAddr}}, "
                 "{{.InitContainerImage}} and {{.MaxTries}}")
      ->type_name("FILE");
  app.add_option(
      "--gang-scheduler-name", flags->pytorch.gang_scheduler,
      "volcano, or the name of a scheduler with the coscheduling plugin; each PyTorchJob then gets a PodGroup");
  app.add_flag("--leader-elect,!--no-leader-elect", flags->leader_elect,
               "act only while holding the Lease trainer.kubeflow.org (default)");
  app.add_option(
      "--lease-namespace", flags->lease_namespace,
      "namespace of the Lease and of the controller's own Secrets; else the pod's namespace, or the context's");
  app.add_option("--qps", flags->writes_per_second, "writes to the API server a second")
      ->check(CLI::Range(1.0, 100000.0))
      ->capture_default_str();
  app.add_option("--burst", flags->burst, "writes at once")->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--workers", flags->workers, "jobs of a kind that are worked on at a time")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--log-level", flags->log_level, "level of the log; default info")
      ->type_name("debug|info|warning|error")
      ->envname("MUSTER_LOG_LEVEL");
  app.add_option("--log-format", flags->log_format, "format of the log; default text")
      ->type_name("text|json")
      ->envname("MUSTER_LOG_FORMAT");
}

Status ConfigureLog(const Flags& flags) {
  log::Options options;
  MUSTER_ASSIGN_OR_RETURN(options.level, log::ParseLevel(flags.log_level));
  MUSTER_ASSIGN_OR_RETURN(options.format, log::ParseFormat(flags.log_format));
  log::Configure(options);
  return absl::OkStatus();
}

// Makes the parts of the controller and connects them. Stops the loop when the controller ends.
class Running {
 public:
  Running(asio::io_context& loop, const Flags& flags, ClusterAccess access)
      : loop_(loop),
        flags_(flags),
        lease_namespace_(flags.lease_namespace.empty() ? access.ns : flags.lease_namespace),
        access_(std::move(access)),
        client_(loop, access_, {.writes_per_second = flags.writes_per_second, .burst = flags.burst}),
        master_key_(client_, lease_namespace_),
        runtimes_(loop, client_, flags.ns),
        events_(loop, client_, "muster-controller"),
        pytorch_events_(loop, client_, kPyTorchOperator),
        signals_(loop, SIGTERM, SIGINT) {}

  Status Begin() {
    MUSTER_ASSIGN_OR_RETURN(const ListenAddress listen, ReadListenAddress("--listen", flags_.listen));
    const bool metrics = flags_.metrics_listen.empty();
    MUSTER_ASSIGN_OR_RETURN(health_, ServeHealth(loop_, listen, Sources(), metrics));
    log::Info(fmt::format("muster-controller {} serves /healthz{} on port {}", Version(),
                          metrics ? ", /readyz and /metrics" : " and /readyz", health_->port()));
    signals_.async_wait([this](boost::system::error_code error, int number) {
      if (!error) Stop(number);
    });
    if (!flags_.status_listen.empty() && flags_.webhook_listen.empty()) {
      return absl::InvalidArgumentError(
          "--status-listen needs --webhook-listen: the status server has the webhooks' certificate");
    }
    if (!flags_.metrics_listen.empty() && flags_.webhook_listen.empty()) {
      return absl::InvalidArgumentError(
          "--metrics-listen needs --webhook-listen: the metrics server has the webhooks' certificate");
    }
    if (!flags_.webhook_listen.empty()) MUSTER_RETURN_IF_ERROR(PrepareWebhooks());
    if (!flags_.leader_elect) {
      Lead();
      return absl::OkStatus();
    }
    const std::string identity = fmt::format("{}_{}", HostName(), RandomName());
    leader_ = std::make_unique<Leader>(loop_, client_, lease_namespace_, kLease, identity, LeaseRules{},
                                       Leader::Events{.began = [this] { Lead(); },
                                                      .lost =
                                                          [this](const std::string& why) {
                                                            log::Error(fmt::format("the leadership is lost: {}", why));
                                                            End(kExitLeaseLost);
                                                          },
                                                      .say = [](const std::string& text) { log::Info(text); }});
    leader_->Begin();
    return absl::OkStatus();
  }

  int exit_code() const { return exit_code_; }

 private:
  bool Serves() const {
    return (webhooks_ || flags_.webhook_listen.empty()) && (status_server_ || flags_.status_listen.empty()) &&
           (metrics_server_ || flags_.metrics_listen.empty());
  }

  HealthSources Sources() {
    return {.leads = [this] { return Leads(); },
            .synced = [this] { return Synced(); },
            .serves = [this] { return Serves(); },
            .jobs = [this] { return jobs_ ? jobs_->counts() : JobCounts(); },
            .pytorch_jobs = [this] { return pytorch_jobs_ ? pytorch_jobs_->counts() : JobCounts(); },
            .client = client_};
  }

  bool Synced() const {
    return jobs_ && jobs_->synced() && (!flags_.serve_pytorch_jobs || (pytorch_jobs_ && pytorch_jobs_->synced()));
  }

  ControllerContext Context(EventRecorder& events) {
    return {loop_, client_, master_key_, events, [this] { return Leads(); }};
  }

  bool Leads() const { return !flags_.leader_elect || (leader_ && leader_->MayAct()); }

  PlanOptions Planning() const {
    return {
        .agent_image = flags_.agent_image, .version = std::string(Version()), .status_server = status_server_address_};
  }

  PyTorchOptions PlanningPyTorchJobs() const {
    PyTorchOptions options = flags_.pytorch;
    options.agent = Planning();
    options.restart = flags_.pytorch_restart == "job" ? RestartScope::kJob : RestartScope::kPod;
    return options;
  }

  Status PrepareWebhooks() {
    MUSTER_ASSIGN_OR_RETURN(webhook_listen_, ReadListenAddress("--webhook-listen", flags_.webhook_listen));
    if (!flags_.status_listen.empty()) {
      MUSTER_ASSIGN_OR_RETURN(status_listen_, ReadListenAddress("--status-listen", flags_.status_listen));
    }
    if (!flags_.metrics_listen.empty()) {
      MUSTER_ASSIGN_OR_RETURN(metrics_listen_, ReadListenAddress("--metrics-listen", flags_.metrics_listen));
    }
    if (!flags_.webhook_client_ca.empty()) {
      MUSTER_ASSIGN_OR_RETURN(client_ca_, ReadClientCa());
      MUSTER_ASSIGN_OR_RETURN(
          client_ca_watch_,
          FolderWatch::Begin(loop_, flags_.webhook_client_ca, "--webhook-client-ca", [this] { LookAtClientCa(); }));
    }
    runtimes_.Begin();
    if (!flags_.webhook_cert_dir.empty()) {
      folder_ = std::make_unique<CertificateFolder>(loop_, flags_.webhook_cert_dir,
                                                    [this](const CertificateSet& set) { return Serve(set); });
      return folder_->Begin();
    }
    certificates_ = std::make_unique<OwnCertificates>(loop_, client_, lease_namespace_, webhook_listen_.host,
                                                      [this](const CertificateSet& set) {
                                                        if (const Status status = Serve(set); !status.ok()) {
                                                          log::Error(Message(status));
                                                          End(kExitBadConfiguration);
                                                        }
                                                      });
    certificates_->Begin();
    return absl::OkStatus();
  }

  // Starts the servers, or gives running ones a new certificate.
  Status Serve(const CertificateSet& set) {
    MUSTER_RETURN_IF_ERROR(ServeWebhooks(set));
    served_ = set;
    if (!flags_.metrics_listen.empty()) MUSTER_RETURN_IF_ERROR(ServeMetrics(set));
    return flags_.status_listen.empty() ? absl::OkStatus() : ServeStatus(set);
  }

  // Starts the metrics server once.
  Status ServeMetrics(const CertificateSet& set) {
    const http::ServerCertificate certificate{.chain = set.certificate, .key = set.key, .client_ca = ""};
    if (metrics_server_) return metrics_tls_->Replace(certificate);
    MUSTER_ASSIGN_OR_RETURN(metrics_tls_, http::ServerTls::Make(certificate));
    MUSTER_ASSIGN_OR_RETURN(
        metrics_server_, MetricsServer::Listen(loop_, access_, metrics_listen_.host, metrics_listen_.port, metrics_tls_,
                                               [sources = Sources()] { return MetricsPage(sources); }));
    log::Info(fmt::format("/metrics is served over HTTPS on port {}", metrics_server_->port()));
    return absl::OkStatus();
  }

  Status ServeWebhooks(const CertificateSet& set) {
    const http::ServerCertificate certificate{.chain = set.certificate, .key = set.key, .client_ca = client_ca_};
    if (webhooks_) return tls_->Replace(certificate);
    MUSTER_ASSIGN_OR_RETURN(tls_, http::ServerTls::Make(certificate));
    using Clients = Webhooks::Context::Clients;
    const bool known = !client_ca_.empty() || flags_.webhook_trust_clients;
    MUSTER_ASSIGN_OR_RETURN(
        webhooks_, Webhooks::Listen({loop_, client_, runtimes_, known ? Clients::kApiServers : Clients::kAnybody},
                                    PlanningPyTorchJobs(), webhook_listen_.host, webhook_listen_.port, tls_));
    log::Info(fmt::format("admission webhooks are served on port {}", webhooks_->port()));
    return absl::OkStatus();
  }

  // An empty text would mean that no certificate is asked for.
  StatusOr<std::string> ReadClientCa() const {
    auto read = ReadSettingsFile(flags_.webhook_client_ca);
    if (!read.ok()) return Annotate(read.status(), "--webhook-client-ca");
    if (!read->empty()) return read;
    return absl::InvalidArgumentError(fmt::format("--webhook-client-ca: {} is empty", flags_.webhook_client_ca));
  }

  // After an error the last authority stays.
  void LookAtClientCa() {
    auto read = ReadClientCa();
    if (read.ok() && *read == client_ca_) return;
    const std::string last = client_ca_;
    if (read.ok()) client_ca_ = *std::move(read);
    const Status replaced = !read.ok() ? read.status() : webhooks_ ? ServeWebhooks(served_) : absl::OkStatus();
    if (replaced.ok()) return log::Info("the webhooks have a new authority for clients");
    client_ca_ = last;
    log::Warning(fmt::format("the webhooks' authority for clients was not replaced: {}", Message(replaced)));
  }

  // Starts the status server once. Plans jobs with the authority, which their pods have to trust.
  Status ServeStatus(const CertificateSet& set) {
    const std::string& ca = set.ca;
    if (ca.empty()) {
      return absl::FailedPreconditionError(
          "--status-listen: there is no ca.crt beside tls.crt, and pods check the certificate with it");
    }
    const http::ServerCertificate certificate{.chain = set.certificate, .key = set.key, .client_ca = ""};
    if (status_server_) {
      MUSTER_RETURN_IF_ERROR(status_tls_->Replace(certificate));
    } else {
      MUSTER_ASSIGN_OR_RETURN(status_tls_, http::ServerTls::Make(certificate));
      MUSTER_ASSIGN_OR_RETURN(
          status_server_, StatusServer::Listen(loop_, access_, status_listen_.host, status_listen_.port, status_tls_));
      log::Info(fmt::format("the status server is served on port {}", status_server_->port()));
      const std::string host = status_listen_.host.empty() ? WebhookHost(lease_namespace_) : status_listen_.host;
      status_server_address_ = {.url = "https://" + JoinHostPort(host, status_server_->port()), .ca = ""};
    }
    if (std::exchange(status_server_address_->ca, ca) == ca) return absl::OkStatus();
    if (jobs_) {
      jobs_->PlanWith(Planning());
    } else if (leads_) {
      Lead();
    }
    return absl::OkStatus();
  }

  // Begins to control jobs, once the address of the status server is known, which plans contain.
  void Lead() {
    leads_ = true;
    if (!flags_.status_listen.empty() && !status_server_address_) return;
    log::Info(flags_.leader_elect ? "leading" : "leading, without a Lease");
    TrainJobs::Options options;
    options.plan = Planning();
    options.ns = flags_.ns;
    options.queue.workers = flags_.workers;
    jobs_ = std::make_unique<TrainJobs>(Context(events_), runtimes_, options);
    jobs_->Begin();
    if (flags_.serve_pytorch_jobs) ServePyTorchJobs();
  }

  void ServePyTorchJobs() {
    PyTorchJobs::Options options;
    options.plan = PlanningPyTorchJobs();
    options.ns = flags_.ns;
    options.queue.workers = flags_.workers;
    pytorch_jobs_ = std::make_unique<PyTorchJobs>(Context(pytorch_events_), options);
    pytorch_jobs_->Begin();
  }

  void Stop(int number) {
    log::Info(fmt::format("{}: ending; jobs go on by themselves", SignalName(number)));
    leads_ = false;
    jobs_.reset();
    pytorch_jobs_.reset();
    if (!leader_) return End(0);
    leader_->Release([this] { End(0); });
  }

  void End(int code) {
    exit_code_ = code;
    loop_.stop();
  }

  asio::io_context& loop_;
  const Flags& flags_;
  const std::string lease_namespace_;
  const ClusterAccess access_;
  ApiClient client_;
  MasterKey master_key_;
  RuntimeCache runtimes_;
  EventRecorder events_, pytorch_events_;
  asio::signal_set signals_;
  std::unique_ptr<http::Server> health_;
  ListenAddress webhook_listen_, status_listen_, metrics_listen_;
  std::string client_ca_;  // PEM; empty: none
  std::unique_ptr<FolderWatch> client_ca_watch_;
  CertificateSet served_;
  std::shared_ptr<http::ServerTls> tls_, status_tls_, metrics_tls_;
  std::unique_ptr<Webhooks> webhooks_;
  std::unique_ptr<StatusServer> status_server_;
  std::unique_ptr<MetricsServer> metrics_server_;
  std::optional<StatusServerAddress> status_server_address_;
  std::unique_ptr<OwnCertificates> certificates_;
  std::unique_ptr<CertificateFolder> folder_;
  std::unique_ptr<Leader> leader_;
  std::unique_ptr<TrainJobs> jobs_;
  std::unique_ptr<PyTorchJobs> pytorch_jobs_;
  bool leads_ = false;
  int exit_code_ = 0;
};

Status ReadWaitTemplate(Flags* flags) {
  if (flags->wait_template_file.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(InputFile file, ReadInput(flags->wait_template_file));
  flags->pytorch.wait_template = std::move(file.text);
  return WaitContainers(flags->pytorch, "master", Json::object()).status();
}

int Run(Flags flags) {
  Status usable = ConfigureLog(flags);
  if (usable.ok()) usable = ReadWaitTemplate(&flags);
  if (!usable.ok()) {
    PrintTo(stderr, "muster-controller: {}\n", Message(usable));
    return kExitUsage;
  }
  auto access = FindCluster(flags.kubeconfig, flags.context, Environment::OfProcess());
  if (!access.ok()) {
    log::Error(Message(access.status()));
    return kExitBadConfiguration;
  }
  asio::io_context loop;
  Running running(loop, flags, *std::move(access));
  if (Status status = running.Begin(); !status.ok()) {
    log::Error(Message(status));
    return absl::IsInvalidArgument(status) ? kExitUsage : kExitBadConfiguration;
  }
  loop.run();
  return running.exit_code();
}

}  // namespace

void AddRunCommand(CLI::App* app, std::function<int()>* run) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app->add_subcommand("run", "Serve the TrainJobs of a cluster, and its PyTorchJobs with --serve-pytorchjobs");
  Declare(*command, flags.get());
  command->callback([flags, run] { *run = [flags] { return Run(*flags); }; });
}

}  // namespace muster::controller
