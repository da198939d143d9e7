// libFuzzer: what hands out AWS's keys answers. The first byte chooses: a word of the metadata service, the portal of
// single sign-on, else an endpoint of keys.
#include "initializers/aws_answers.h"

#include <cstdlib>

namespace muster::initializers {
namespace {

void Must(bool holds) {
  if (!holds) abort();
}

bool FitsHeader(std::string_view text) {
  for (unsigned char c : text) {
    if (c <= ' ' || c >= 0x7f) return false;
  }
  return true;
}

void Keys(const StatusOr<TemporaryKeys>& found) {
  if (!found.ok())
    return Must(Message(found.status()).find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
  Must(!found->keys.access_key.empty() && !found->keys.secret_key.empty());
  Must(FitsHeader(found->keys.access_key) && FitsHeader(found->keys.secret_key));
  Must(FitsHeader(found->keys.session_token));
}

}  // namespace
}  // namespace muster::initializers

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::initializers;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0]) {
    case 'w': {
      const auto word = ParseWord(text);
      if (word.ok()) Must(!word->empty() && FitsHeader(*word) && text.find(*word) != std::string_view::npos);
      break;
    }
    case 's':
      Keys(ParseSsoKeys(text));
      break;
    default:
      Keys(ParseMachineKeys(text));
  }
  return 0;
}
