// What the fuzz targets share: a claim about what was read, and input whose first byte chooses.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

inline void Must(bool holds) {
  if (!holds) std::abort();
}

struct ChosenInput {
  uint8_t choice = 0;
  std::string_view text;
};

inline ChosenInput Choose(const uint8_t* data, size_t size) {
  if (size == 0) return {};
  return {data[0], {reinterpret_cast<const char*>(data + 1), size - 1}};
}
