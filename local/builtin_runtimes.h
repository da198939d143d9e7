// SPDX-License-Identifier: Apache-2.0
// The runtimes of controller/manifests/runtimes, which are also installed in clusters. A job may name them without a
// file.
#pragma once

#include <span>
#include <string_view>

namespace muster::local {

struct BuiltinRuntime {
  std::string_view name, text;  // text: YAML
};

extern const std::span<const BuiltinRuntime> kBuiltinRuntimes;

}  // namespace muster::local
