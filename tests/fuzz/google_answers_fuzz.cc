// SPDX-License-Identifier: Apache-2.0
// libFuzzer: answers of the servers that issue Google's tokens. The first byte chooses: the IAM credentials API, a
// subject token, an error; else OAuth.
#include "initializers/google/answers.h"
#include "tests/fuzz/input.h"

namespace muster::initializers {
namespace {

void Token(const StatusOr<BearerToken>& token) {
  if (!token.ok()) return;
  Must(!token->text.empty() && token->text.size() <= kLongestToken);
  for (unsigned char c : token->text) Must(c > ' ' && c < 0x7f);
  Must(token->life >= 0 && token->life <= kLongestTokenLife);
}

void Subject(std::string_view text) {
  const std::string plain = SubjectTokenIn(text, "");
  Must(plain.size() <= text.size());
  (void)SubjectTokenIn(text, "access_token");
}

void Error(std::string_view text) {
  const std::string told = ToldByGoogle(400, text);
  Must(told.starts_with("400") && told.size() < 4096);
  for (unsigned char c : told) Must(c >= ' ' && c != 0x7f);
}

}  // namespace
}  // namespace muster::initializers

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::initializers;
  const auto [choice, text] = Choose(data, size);
  switch (choice) {
    case 'i':
      for (int64_t now : {int64_t{0}, int64_t{1'795'309'323}, int64_t{253'402'300'799}})
        Token(ParseIamToken(text, now));
      break;
    case 's':
      Subject(text);
      break;
    case 'e':
      Error(text);
      break;
    default:
      Token(ParseOauthToken(text));
  }
  return 0;
}
