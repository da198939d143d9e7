// SPDX-License-Identifier: Apache-2.0
// libFuzzer: a kubeconfig, or the output of a credential plugin. The first byte chooses.
#include "base/text.h"
#include "controller/kube/client/cluster_access.h"
#include "controller/kube/client/exec_credential.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::controller;
  const auto [choice, text] = Choose(data, size);
  if (choice == 'p') {
    const auto credential = ReadExecCredential(text, "client.authentication.k8s.io/v1");
    if (!credential.ok()) return 0;
    Must(!credential->token.empty() || !credential->client_key.empty());
    Must(muster::IsVisible(credential->token));
    Must(credential->client_key.empty() == credential->client_certificate.empty());
    return 0;
  }
  const auto access = ReadKubeconfig(text, "/nowhere", "");
  if (!access.ok()) return 0;
  Must(access->server.starts_with("https://") || access->server.starts_with("http://"));
  Must(!access->server.ends_with('/'));
  Must(access->client_key.empty() == access->client_certificate.empty());
  Must(muster::IsVisible(access->token));
  Must(!access->exec || !access->exec->command.empty());
  return 0;
}
