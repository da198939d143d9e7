// SPDX-License-Identifier: Apache-2.0
#include "http/percent.h"

#include <gtest/gtest.h>

namespace muster::http {
namespace {

TEST(Percent, EncodesAllButUnreservedCharacters) {
  EXPECT_EQ(PercentEncode("azAZ09-._~"), "azAZ09-._~");
  EXPECT_EQ(PercentEncode("a b+c/d", "/"), "a%20b%2Bc/d");
  EXPECT_EQ(PercentEncode("a/b"), "a%2Fb");
  EXPECT_EQ(PercentEncode(std::string_view("\0\xff", 2)), "%00%FF");
  EXPECT_EQ(PercentEncode("é"), "%C3%A9");
}

TEST(Percent, DecodesAndLeavesWhatIsNoEscape) {
  EXPECT_EQ(PercentDecode("a%20b%2Bc%2fd"), "a b+c/d");
  EXPECT_EQ(PercentDecode("a+b"), "a+b");
  EXPECT_EQ(PercentDecode("a+b%2B", true), "a b+");
  EXPECT_EQ(PercentDecode("100%"), "100%");
  EXPECT_EQ(PercentDecode("%2"), "%2");
  EXPECT_EQ(PercentDecode("%zz%41"), "%zzA");
}

}  // namespace
}  // namespace muster::http
