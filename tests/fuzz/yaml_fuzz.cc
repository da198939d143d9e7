// SPDX-License-Identifier: Apache-2.0
// libFuzzer: files of Kubernetes objects. An object that was read must survive writing and reading; messages must be
// one line. The first byte chooses: a quantity; else YAML.
#include "base/text.h"
#include "controller/api/quantity.h"
#include "controller/api/yaml.h"
#include "tests/fuzz/input.h"

namespace muster::controller {
namespace {

constexpr size_t kMostNodes = 10'000;

void Yaml(std::string_view text) {
  const auto documents = ReadYaml(text, kMostNodes);
  if (!documents.ok()) {
    Must(!Message(documents.status()).empty());
    Must(Message(documents.status()).find_first_of("\r\n") == std::string_view::npos);
    return;
  }
  for (const YamlDocument& document : *documents) {
    Must(document.LineOf("spec.trainer.env[0].name") >= 1);
    // A v1 List would be read as its items, not as one object.
    if (TextField(document.object, "kind") == "List") continue;
    const auto again = ReadYaml(WriteYaml(document.object), 2 * kMostNodes);
    Must(again.ok() && again->size() == 1 && again->front().object == document.object);
  }
}

void AQuantity(std::string_view text) {
  const auto quantity = ParseQuantity(text);
  if (!quantity.ok()) return;
  Must(Quantity(quantity->Units()) >= *quantity || *quantity < Quantity());
  Must(quantity->IsZero() == (*quantity == Quantity()));
}

}  // namespace
}  // namespace muster::controller

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::controller;
  const auto [choice, text] = Choose(data, size);
  if (choice == 'q') {
    AQuantity(text);
  } else {
    Yaml(text);
  }
  return 0;
}
