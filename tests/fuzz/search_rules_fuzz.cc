// SPDX-License-Identifier: Apache-2.0
// libFuzzer: resolv.conf; the first byte chooses whether its first line is LOCALDOMAIN or RES_OPTIONS.
#include "base/text.h"
#include "net/dns_lookup.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto [choice, text] = Choose(data, size);
  const std::string_view first = text.substr(0, text.find('\n'));
  const auto rules =
      muster::net::ReadSearchRules(text, choice == 'l' ? first : "", choice == 'o' ? first : "", "host.example");
  for (const char* name : {"a", "a.b", "a.b."}) {
    const auto names = muster::net::CompleteNames(name, rules);
    Must(!names.empty() && names.size() <= rules.domains.size() + 1);
    for (const std::string& complete : names) Must(complete.ends_with('.') && complete.starts_with('a'));
  }
  return 0;
}
