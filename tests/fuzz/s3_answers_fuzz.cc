// SPDX-License-Identifier: Apache-2.0
// libFuzzer: answers of S3 and STS. The first byte chooses: a page, an error, credentials, or an object's headers.
#include <map>

#include "base/text.h"
#include "initializers/aws/s3_answers.h"
#include "initializers/aws/s3_checksums.h"
#include "initializers/stores/xml_error.h"
#include "tests/fuzz/input.h"

namespace muster::initializers {
namespace {

void Page(std::string_view xml) {
  auto page = ParseS3Page(xml);
  if (!page.ok()) return;
  for (const S3Object& object : page->objects) Must(!object.key.empty());
  Must(!page->next || !page->next->empty());
}

void Error(std::string_view xml) {
  const XmlError error = ParseXmlError(xml);
  Must(error.code.size() <= 128 && error.message.size() <= 1024);
  for (const std::string& text : {error.code, error.message, error.region, error.endpoint}) {
    Must(text.find_first_of("\r\n") == std::string::npos);
  }
  Must((error.region + error.endpoint).find_first_of("/@ ?#") == std::string::npos);
}

void Credentials(std::string_view xml) {
  auto credentials = ParseStsAnswer(xml);
  if (!credentials.ok()) return;
  const std::string all = credentials->access_key + credentials->secret_key + credentials->session_token;
  Must(all.find_first_of("\r\n ") == std::string::npos);
}

// The input: the ETag, the size, the part size, then headers "name: value", a line each.
void Headers(std::string_view text) {
  const auto lines = Split(text, '\n');
  if (lines.size() < 3) return;
  std::map<std::string, std::string, std::less<>> headers;
  for (size_t i = 3; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    if (colon != std::string_view::npos) headers.emplace(lines[i].substr(0, colon), lines[i].substr(colon + 1));
  }
  auto read = [&headers](std::string_view name) -> std::optional<std::string> {
    auto found = headers.find(name);
    return found == headers.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
  const auto size = static_cast<uint64_t>(ParseInt(lines[1]).value_or(0));
  const auto part_size = static_cast<uint64_t>(ParseInt(lines[2]).value_or(0));
  const auto expected = ExpectationOf(read, lines[0], size, part_size);
  if (expected) Must(expected->value.size() == HashBytes(expected->kind));
  if (expected && expected->part_size == 0)
    Must(PartsToMeasure(read, lines[0]) == 0 || expected->kind == HashKind::kMd5);
}

}  // namespace
}  // namespace muster::initializers

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::initializers;
  const auto [choice, text] = Choose(data, size);
  switch (choice) {
    case 'e':
      Error(text);
      break;
    case 'c':
      Credentials(text);
      break;
    case 'h':
      Headers(text);
      break;
    default:
      Page(text);
  }
  return 0;
}
