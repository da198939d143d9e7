// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/check_report.h"

#include <cmath>
#include <vector>

#include "base/json_fields.h"
#include "base/text.h"
#include "rendezvous/outliers.h"

namespace muster::agent {
std::map<std::string, double> ReadMeasured(std::string_view line) {
  std::map<std::string, double> measured;
  const Json json = ReadJsonTop(line, kFieldLevels);
  const Json* found = FindField(json, "measured");
  if (found == nullptr || !found->is_object()) return measured;
  for (const auto& [name, value] : found->items()) {
    if (measured.size() == rendezvous::kMaxMeasured) break;
    if (name.empty() || name.size() > rendezvous::kMaxMeasuredName || !value.is_number()) continue;
    double number = value.get<double>();
    if (std::isfinite(number) && number >= 0) measured.emplace(name, number);
  }
  return measured;
}

std::string DescribeMeasured(const std::map<std::string, double>& measured) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : measured) {
    parts.push_back(fmt::format("{} {}", name, rendezvous::DescribeMeasure(name, value)));
  }
  return parts.empty() ? "" : fmt::format(": {}", Join(parts, ", "));
}

}  // namespace muster::agent
