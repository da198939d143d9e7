#include "controller/kube/certificate_folder.h"

#include <sys/inotify.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "base/text.h"

namespace muster::controller {
namespace {

StatusOr<std::string> ReadPem(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) {
    return absl::FailedPreconditionError(fmt::format("--webhook-cert-dir: {} cannot be read, or is empty", path));
  }
  return text.str();
}

}  // namespace

CertificateFolder::CertificateFolder(boost::asio::io_context& loop, std::string folder, Given given)
    : events_(loop), folder_(std::move(folder)), given_(std::move(given)) {}

Status CertificateFolder::Begin() {
  const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (watch < 0) return ErrnoStatus(errno, "--webhook-cert-dir: the folder cannot be watched (inotify)");
  events_.assign(watch);
  // A volume of a Secret is changed by renaming a link over another.
  if (inotify_add_watch(watch, folder_.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR) < 0) {
    return ErrnoStatus(errno, fmt::format("--webhook-cert-dir: {} cannot be watched", folder_));
  }
  MUSTER_RETURN_IF_ERROR(Give());
  Await();
  return absl::OkStatus();
}

Status CertificateFolder::Give() {
  CertificateSet set;
  MUSTER_ASSIGN_OR_RETURN(set.certificate, ReadPem(folder_ + "/tls.crt"));
  MUSTER_ASSIGN_OR_RETURN(set.key, ReadPem(folder_ + "/tls.key"));
  set.ca = ReadPem(folder_ + "/ca.crt").value_or("");
  return Annotate(given_(set), folder_);
}

void CertificateFolder::Await() {
  events_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](boost::system::error_code error) {
    if (error) return;
    std::array<char, 4096> dropped;
    while (read(events_.native_handle(), dropped.data(), dropped.size()) > 0) {
    }
    if (const Status status = Give(); !status.ok()) {
      log::Warning(fmt::format("the webhooks' certificate stays as it was: {}", Message(status)));
    } else {
      log::Info(fmt::format("the webhooks' certificate is read anew from {}", folder_));
    }
    Await();
  });
}

}  // namespace muster::controller
