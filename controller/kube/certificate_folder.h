// The webhooks' certificate from files that somebody else renews, such as cert-manager: tls.crt and tls.key in a
// folder, as a volume of a Secret has them, and ca.crt where there is one. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <string>

#include "base/status.h"
#include "controller/kube/certificates.h"

namespace muster::controller {

class CertificateFolder {
 public:
  using Given = std::function<Status(const CertificateSet&)>;

  CertificateFolder(boost::asio::io_context& loop, std::string folder, Given given);

  // `given` hears of what is there, then of each change (inotify). The first error, also `given`'s, is returned; later
  // ones are logged, and what was given before stays. A refusal of half-written files is made good by their next event.
  Status Begin();

 private:
  Status Give();
  void Await();

  boost::asio::posix::stream_descriptor events_;
  const std::string folder_;
  const Given given_;
};

}  // namespace muster::controller
