// SPDX-License-Identifier: Apache-2.0
// libFuzzer: answers of Google Cloud Storage. The first byte chooses: a page, an object, or an error.
#include "initializers/google/gcs_answers.h"
#include "tests/fuzz/input.h"

namespace muster::initializers {
namespace {

void Check(const Entry& entry) {
  Must(!entry.key.empty() && !entry.version.empty());
  Must(entry.version.find_first_not_of("0123456789") == std::string::npos);
  if (entry.expected) Must(entry.expected->value.size() == HashBytes(entry.expected->kind));
}

void Page(std::string_view json) {
  auto page = ParseObjects(json);
  if (!page.ok()) return;
  for (const Entry& entry : page->entries) Check(entry);
}

void Object(std::string_view json) {
  auto entry = ParseObject(json);
  if (entry.ok()) Check(*entry);
}

void Error(std::string_view body) {
  for (int status : {400, 401, 403, 404, 412, 429, 503}) {
    const http::Refusal refusal = RefusalOfGcs({status, {}}, body, "gs://b/o", 0);
    Must(!refusal.status.ok() && refusal.status.message().size() < 2048);
    Must(refusal.status.message().find('\n') == std::string::npos);
  }
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
    case 'o':
      Object(text);
      break;
    default:
      Page(text);
  }
  return 0;
}
