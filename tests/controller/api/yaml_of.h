// SPDX-License-Identifier: Apache-2.0
// Reads YAML in tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "controller/api/yaml.h"

namespace muster::controller {

// The one object in `text`. If there is not exactly one, the test fails and this returns null.
inline Json YamlOf(std::string_view text) {
  auto documents = ReadYaml(text);
  if (!documents.ok()) {
    ADD_FAILURE() << Message(documents.status()) << "\n" << text;
    return Json();
  }
  if (documents->size() != 1) {
    ADD_FAILURE() << documents->size() << " objects in\n" << text;
    return Json();
  }
  return documents->front().object;
}

// `text` with every `from` replaced by `to`.
inline std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace muster::controller
