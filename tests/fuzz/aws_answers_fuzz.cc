// SPDX-License-Identifier: Apache-2.0
// libFuzzer: answers of the sources of AWS credentials. The first byte chooses: a word of the metadata service, the
// portal of single sign-on, a credential process, else a credentials endpoint.
#include "base/text.h"
#include "initializers/aws/answers.h"
#include "tests/fuzz/input.h"

namespace muster::initializers {
namespace {

void Keys(const StatusOr<TemporaryKeys>& found) {
  if (!found.ok())
    return Must(Message(found.status()).find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
  Must(!found->keys.access_key.empty() && !found->keys.secret_key.empty());
  Must(IsVisible(found->keys.access_key) && IsVisible(found->keys.secret_key));
  Must(IsVisible(found->keys.session_token));
}

}  // namespace
}  // namespace muster::initializers

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::initializers;
  const auto [choice, text] = Choose(data, size);
  switch (choice) {
    case 'w': {
      const auto word = ParseWord(text);
      if (word.ok()) Must(!word->empty() && muster::IsVisible(*word) && text.find(*word) != std::string_view::npos);
      break;
    }
    case 's':
      Keys(ParseSsoKeys(text));
      break;
    case 'p':
      Keys(ParseProcessKeys(text));
      break;
    default:
      Keys(ParseMachineKeys(text));
  }
  return 0;
}
