// SPDX-License-Identifier: Apache-2.0
// The webhooks' certificate from files that another program renews, such as cert-manager: tls.crt, tls.key and, if it
// exists, ca.crt in a folder, as in a volume of a Secret. Loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/folder_watch.h"
#include "controller/kube/webhook/certificates.h"

namespace muster::controller {

class CertificateFolder {
 public:
  using Given = std::function<Status(const CertificateSet&)>;

  CertificateFolder(boost::asio::io_context& loop, std::string folder, Given given)
      : loop_(loop), folder_(std::move(folder)), given_(std::move(given)) {}

  // Calls `given` with the certificate, then with each other one that the files hold. Returns the first error, also of
  // `given`. Later errors are logged, and the last certificate stays; half-written files are read again when changed.
  Status Begin();

 private:
  StatusOr<bool> Give();  // true: the certificate has changed
  void Look();

  boost::asio::io_context& loop_;
  const std::string folder_;
  const Given given_;
  std::optional<CertificateSet> last_;
  std::unique_ptr<FolderWatch> watch_;
};

}  // namespace muster::controller
