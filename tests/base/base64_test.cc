// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <gtest/gtest.h>

#include "tests/base/made_bytes.h"

namespace muster {
namespace {

TEST(Base64, DecodesWhatItEncoded) {
  const struct {
    std::string_view raw, text;
  } rows[] = {
      // RFC 4648, section 10
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {"\xfb\xff\xbf", "+/+/"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(ToBase64(row.raw), row.text);
    EXPECT_EQ(*FromBase64(row.text), row.raw);
  }
  for (size_t size = 0; size < 100; ++size) {
    const std::string raw = MadeBytes(size, size);
    EXPECT_EQ(*FromBase64(ToBase64(raw)), raw);
  }
  for (std::string_view bad : {"Z", "Zg", "Zg=", "Zg===", "====", "=AAA", "A===", "Zg==Zg==", "Zm9v\n", "Zm-_",
                               "Zh==", "Zm9=", " Zg=", "Zg= "}) {
    EXPECT_FALSE(FromBase64(bad).ok()) << bad;
  }
  EXPECT_EQ(Message(FromBase64("Zm-_").status()), "'Zm-_' is not base64: it may hold only A-Z, a-z, 0-9, + and /");
}

}  // namespace
}  // namespace muster
