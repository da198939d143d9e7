// The webhooks' certificates where nobody else makes them: kept in a Secret, shared by all replicas, and made known to
// the API server as caBundle of the two configurations of webhooks. Loop thread only.
//
// Whoever comes first makes the Secret; the others read it. Secret and configurations are watched: a Secret that is
// deleted is made anew from what is held, one that cannot be used is replaced, a caBundle that somebody takes away is
// put back. A write never overwrites what it has not seen (resourceVersion). What fails is tried again for ever.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/kube/api_client.h"
#include "controller/kube/certificates.h"
#include "controller/kube/informer.h"

namespace muster::controller {

// Upstream's names.
inline constexpr char kWebhookSecret[] = "kubeflow-trainer-webhook-cert";
inline constexpr char kWebhookService[] = "kubeflow-trainer-controller-manager";
inline constexpr char kValidatingConfiguration[] = "validator.trainer.kubeflow.org";
inline constexpr char kMutatingConfiguration[] = "defaulter.trainer.kubeflow.org";

// By which a cluster reaches the webhooks: DNS name of the Service in `ns`.
std::string WebhookHost(std::string_view ns);

class OwnCertificates {
 public:
  using Given = std::function<void(const CertificateSet&)>;

  // `ns`: of the Secret and the Service. `host`: what else the server is called by; empty: nothing. `given` hears of
  // each certificate to serve with, once it is stored. `client` outlives it.
  OwnCertificates(boost::asio::io_context& loop, ApiClient& client, std::string ns, const std::string& host,
                  Given given);
  void Begin();

 private:
  struct Configuration {
    const Resource& resource;
    Json object;  // as last seen; null: not there
    ApiClient::Handle writing;
    int failures = 0;
    std::unique_ptr<boost::asio::steady_timer> again;
  };

  std::unique_ptr<Informer> Watch(const Resource& resource, const std::string& ns, const std::string& name,
                                  std::function<void(Json)> seen, std::function<void()> synced);
  void Look();
  void Store(const CertificateSet& set);
  void LookAgain(Duration pause);
  void Patch(const std::string& name);

  boost::asio::io_context& loop_;
  ApiClient& client_;
  const std::string ns_;
  const std::vector<std::string> names_;
  const Given given_;
  Json secret_;  // as last seen; null: not there
  bool synced_ = false;
  CertificateSet held_;  // that is served with
  ApiClient::Handle storing_;
  int failures_ = 0;
  boost::asio::steady_timer again_;
  std::map<std::string, Configuration> configurations_;
  std::vector<std::unique_ptr<Informer>> informers_;
};

}  // namespace muster::controller
