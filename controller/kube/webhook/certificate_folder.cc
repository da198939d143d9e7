// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/webhook/certificate_folder.h"

#include "base/log.h"
#include "base/settings_file.h"
#include "base/text.h"

namespace muster::controller {

Status CertificateFolder::Begin() {
  MUSTER_ASSIGN_OR_RETURN(watch_,
                          FolderWatch::Begin(loop_, folder_ + "/tls.crt", "--webhook-cert-dir", [this] { Look(); }));
  return Annotate(Give().status(), "--webhook-cert-dir");
}

StatusOr<bool> CertificateFolder::Give() {
  CertificateSet set;
  MUSTER_ASSIGN_OR_RETURN(set.certificate, ReadSettingsFile(folder_ + "/tls.crt"));
  MUSTER_ASSIGN_OR_RETURN(set.key, ReadSettingsFile(folder_ + "/tls.key"));
  set.ca = ReadSettingsFile(folder_ + "/ca.crt").value_or("");
  if (set == last_) return false;
  MUSTER_RETURN_IF_ERROR(Annotate(given_(set), folder_));
  last_ = std::move(set);
  return true;
}

void CertificateFolder::Look() {
  const auto given = Give();
  if (!given.ok()) log::Warning(fmt::format("the webhooks' certificate was not replaced: {}", Message(given.status())));
  if (given.ok() && *given) log::Info(fmt::format("the webhooks have a new certificate from {}", folder_));
}

}  // namespace muster::controller
