// SPDX-License-Identifier: Apache-2.0
// libFuzzer: HTTPS_PROXY, NO_PROXY and the requested URL, a line each.
#include "base/text.h"
#include "http/proxies.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto lines = muster::Split(text, '\n');
  lines.resize(3);
  const muster::Environment environment{{"HTTPS_PROXY", std::string(lines[0])}, {"NO_PROXY", std::string(lines[1])}};
  const auto proxies = muster::http::Proxies::Read(environment);
  if (!proxies.ok()) {
    Must(muster::Message(proxies.status()).find_first_of("\r\n") == std::string_view::npos);
    return 0;
  }
  const std::string proxy = proxies->For(lines[2]);
  Must(proxy.empty() || proxy.find("://") != std::string::npos);
  return 0;
}
