// SPDX-License-Identifier: Apache-2.0
// What tests ask of HTML as text: that a hostile text stays a text.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace muster::agent {

// Markup, both quotes, an ANSI sequence, a change of the direction of writing, and a byte that is no UTF-8.
inline const std::string kEvilText = "<script>alert(1)</script>\"'><img src=x onerror=y>&\x1b[31m\xE2\x80\xAE\xff";

inline size_t CountOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

inline void ExpectNoMarkupOf(const std::string& html) {
  EXPECT_THAT(html, testing::HasSubstr("&lt;script&gt;"));
  for (const char* part : {"<script", "<img", "\"'>", "\x1b", "\xE2\x80\xAE", "\xff"}) {
    EXPECT_THAT(html, testing::Not(testing::HasSubstr(part)));
  }
}

}  // namespace muster::agent
