// SPDX-License-Identifier: Apache-2.0
// libFuzzer: source URIs; the first byte is the role.
#include "initializers/facts/source.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::initializers;
  const auto [choice, text] = Choose(data, size);
  const Role role = choice % 2 == 0 ? Role::kDataset : Role::kModel;
  auto source = ParseSource(text, role);
  if (!source.ok()) {
    Must(source.status().message().size() < 4096);
    return 0;
  }
  // The shown form of a URI means the same, except that secrets in its query are hidden.
  auto again = ParseSource(source->uri, role);
  Must(again.ok() && again->uri == source->uri && again->container == source->container);
  if (source->scheme != Scheme::kHttp) Must(*again == *source);
  if (source->scheme == Scheme::kPvc || source->scheme == Scheme::kHuggingFace) {
    Must(("/" + source->path + "/").find("/../") == std::string::npos && !source->path.starts_with('/'));
  }
  Must(source->revision.find("..") == std::string::npos);
  return 0;
}
