// The webhooks' certificate from files that somebody else renews, such as cert-manager: tls.crt and tls.key in a
// folder, as a volume of a Secret has them, and ca.crt where there is one. Loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/folder_watch.h"
#include "controller/kube/certificates.h"

namespace muster::controller {

class CertificateFolder {
 public:
  using Given = std::function<Status(const CertificateSet&)>;

  CertificateFolder(boost::asio::io_context& loop, std::string folder, Given given)
      : loop_(loop), folder_(std::move(folder)), given_(std::move(given)) {}

  // `given` hears of what is there, then of each other certificate. The first error, also `given`'s, is returned; later
  // ones are logged, and what was given before stays. A refusal of half-written files is made good by their next event.
  Status Begin();

 private:
  StatusOr<bool> Give();  // true: it is another one than before
  void Look();

  boost::asio::io_context& loop_;
  const std::string folder_;
  const Given given_;
  std::optional<CertificateSet> last_;
  std::unique_ptr<FolderWatch> watch_;
};

}  // namespace muster::controller
