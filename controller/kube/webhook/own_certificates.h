// SPDX-License-Identifier: Apache-2.0
// The webhooks' certificates, if no other program makes them. They are kept in a Secret that all replicas share. The
// API server gets the authority as caBundle of the two webhook configurations. Loop thread only.
//
// The first replica creates the Secret; the others read it. Secret and configurations are watched: a deleted Secret is
// created again from the certificates in use, an unusable one is replaced, a removed caBundle is put back. Each write
// carries the resourceVersion that was seen, so it overwrites no other change. Failed writes are retried for ever.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/kube/client/api_client.h"
#include "controller/kube/client/informer.h"
#include "controller/kube/webhook/certificates.h"

namespace muster::controller {

// Kubeflow Trainer's names.
inline constexpr char kWebhookSecret[] = "kubeflow-trainer-webhook-cert";
inline constexpr char kWebhookService[] = "kubeflow-trainer-controller-manager";
inline constexpr char kValidatingConfiguration[] = "validator.trainer.kubeflow.org";
inline constexpr char kMutatingConfiguration[] = "defaulter.trainer.kubeflow.org";

// The DNS name by which the API server reaches the webhooks: the Service in `ns`.
std::string WebhookHost(std::string_view ns);

class OwnCertificates {
 public:
  using Given = std::function<void(const CertificateSet&)>;

  // `ns`: of the Secret and the Service. `host`: another name of the server; empty: none. Calls `given` with each
  // certificate to serve with, after it is stored. `client` must outlive this object.
  OwnCertificates(boost::asio::io_context& loop, ApiClient& client, std::string ns, const std::string& host,
                  Given given);
  void Begin();

 private:
  struct Configuration {
    const Resource& resource;
    Json object;  // as last seen; null: it does not exist
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
  Json secret_;  // as last seen; null: it does not exist
  bool synced_ = false;
  CertificateSet held_;  // in use
  ApiClient::Handle storing_;
  int failures_ = 0;
  boost::asio::steady_timer again_;
  std::map<std::string, Configuration> configurations_;
  std::vector<std::unique_ptr<Informer>> informers_;
};

}  // namespace muster::controller
