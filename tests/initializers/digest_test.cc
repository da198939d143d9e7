// SPDX-License-Identifier: Apache-2.0
// Hashes against values of other implementations (Python's hashlib and zlib, AWS's CRCs), whole, in pieces and
// combined.
#include "initializers/facts/digest.h"

#include <gmock/gmock.h>
#include <openssl/evp.h>

#include <random>

#include "tests/base/made_bytes.h"
#include "tests/initializers/hash_of.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;

constexpr HashKind kAll[] = {HashKind::kSha256, HashKind::kSha1,   HashKind::kGitBlob,  HashKind::kMd5,
                             HashKind::kCrc32,  HashKind::kCrc32c, HashKind::kCrc64Nvme};
constexpr HashKind kCombining[] = {HashKind::kCrc32, HashKind::kCrc32c, HashKind::kCrc64Nvme};

// Hashes of MadeBytes(size, seed), in the order of kAll.
const struct Vector {
  size_t size;
  uint64_t seed;
  std::string_view hashes[7];
} kVectors[] = {
    {0,
     1,
     {"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "da39a3ee5e6b4b0d3255bfef95601890afd80709",
      "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "d41d8cd98f00b204e9800998ecf8427e", "00000000", "00000000",
      "0000000000000000"}},
    {1,
     2,
     {"d1211001882d2ce16a8553e449b6c8b7f71e61836efc2e416143808f20e721e7", "ebcdcb7effcc3f06e0d503638ac621de877fc554",
      "ef6080906700f3f3cdac7d60341a5de7b5da5581", "ffd0ce5d00f597aa4f0d2bb60d17b6bc", "4e0be924", "566ae28a",
      "518efca0a188d57d"}},
    {3,
     3,
     {"b10707192c9682771b90548d2da1c06286073c882c57406edccffa341a4090e0", "fac2a080abaeb0cba17a4616adebba8ae4fb875c",
      "524b29232e7134393858e4df4aeba74bda1eda6c", "bd517952d2f8da3539cdc240967d1362", "b93c7236", "bd2a662a",
      "954cac6c0f3bfaa4"}},
    {7,
     4,
     {"2c32be8f1cb38a11f79d0639c4bfd2e32c3079276396f1ff024d27e3a7007b6b", "ca2b3a5d1532b5d4e2c5a569f99c812ca118c8cf",
      "e66a6b3fe83a4c6cef4a21bcbb038c56c61314b0", "a8ab29cb0c9727fff43a8c0d109686ff", "2a3b3651", "4e49e536",
      "2fde85c51ca796dc"}},
    {8,
     5,
     {"d7a94c39decb94db956e74ef642e907d0fd232565555629964083ea6abd19af5", "58c30d420a2718d5b0f5f7c66cae990e7555f80b",
      "396e8f648975dbe0a9d5dbb7890eb91c5fc6a302", "0e09f8ac9f2777243d5e827f1fe6e2cc", "2a21894c", "58200a85",
      "e4c7207c70b421d0"}},
    {15,
     6,
     {"ab9606dfa57550ab7f7f148b534566a344284b8527809e4f5590283cdb57919d", "fe52e4512270b3559f2b4d98493927bcc5750ec7",
      "7f7de6295f066433fa372cc2cbbb79109dabf35f", "d0e4f7eaae59f0672c3b4c0ebb66b6b7", "4ce8fa57", "b286cf50",
      "a0b3b47b27f8fff2"}},
    {16,
     7,
     {"ecf3419f9b54b0ef1170f11f8e87ae293ab8548e74be9826363091ac725d3e4b", "c982b3b9a44bb039ff3de5a09883b9c7a12aa815",
      "553fe3a0722c2b909c024da917b2a26952ae85d0", "7862cca02f8c9f9f34dccc37abd65f14", "25956660", "c23bcfbe",
      "1ff4175ce692e2e3"}},
    {17,
     8,
     {"000dc017d0a9a0ed467dc55923dd485c1bc51544b31aaed2c5357523b3e36dc3", "932f67f3a614570cc096bee2600c33ec32b3255b",
      "7fdbbf01c5228939458193a2fa0c34a9ad9e9aeb", "a39d2720cbb308b95d99681169bb4cd4", "f9fc6ded", "d9c10915",
      "d8645bb176775787"}},
    {31,
     9,
     {"ec70c875c919dfb3e4a13fdd7220cdb05424a4272a77e494662c74fa3bfa8a38", "c506791234dfb9cbd345492ee77209ee006d3c5b",
      "94c3f012cc5e452cda804d8cbfeca140c1de0c3e", "b72c9f20df57632c5e628149200e46dd", "22c082b3", "1681160f",
      "480508d9b1e98291"}},
    {63,
     10,
     {"451c801dfac1660cb10856df6e19413d46ef139d1c1dc5ef0004c1073f684efc", "3d5b7bf10f181e2f70b728cbb90c2ff7fbced4dc",
      "67542911aff88fe06289e6f72c5d610421b35dd7", "28e3050392b96d3c86b325b794523733", "da2d98dd", "f7fd70d4",
      "c21e6cbbbe091afb"}},
    {64,
     11,
     {"e6f9a9e0b1ce151b81c7052fe13f8965a936622c1b2667f5937eef1e49e19331", "af5592b4633386e7ba8bd34611725ea8cb40bafe",
      "5b7299e2faf109e5b3802468424a6542a965d5ed", "6b11be7e78f98a53a50cd5af0c2476d4", "15c73fe1", "7fa735eb",
      "92d6bc1606cfd694"}},
    {65,
     12,
     {"512b31b67ec3b7de60e61c79185a6f3cd2010dbb50db9af731280a1259328d92", "dfa41ac0a8fbe55a92fcb1ff078b3573a3f3f7a2",
      "0861e7be4afc31298df329c262ad0e245ce01286", "70cb69a9cd949987512520f4b8a44dda", "747c56ac", "c7a9a1b3",
      "45fb9d6da0fdfa5c"}},
    {127,
     13,
     {"4a5dbd60254243f1993cc002c01a12dc12b37a8753b41652840af82dccbd30fb", "962ef16d1ae46a2110eaf5484a7427a5ffd7eb7c",
      "8a57a50564230322d61dd4e5e48f392bc5de72bb", "9fefe3abf2d12e93cfcd8c29cc080d47", "9b8eb994", "2de7b282",
      "a998a549c702cca7"}},
    {128,
     14,
     {"d83aeabfe99f244946a33eb7d65da296f290cc4ebe8837486f47cb9cf2766bf9", "fe9d3f3cbf60a92ccd7d1514cf1c9103eb1ef5bb",
      "7adf72dde602a2362f5aa71eb55b604b3321a8f0", "f57d2ffad858fda81e39cdc02f1e5c9d", "1477e60d", "f499dd6e",
      "bb69ae81bd016d58"}},
    {129,
     15,
     {"7be70990160ed3257c15f4303a4755165e580690a1da8a521ae55a0bc41e64b7", "10de8f7e5f2e44409ff5133958b2d704079e0a84",
      "41bdef20cf66adbdfc29d12eb319046fa1fe7b5d", "66f8ac64b9c72f055f1b2d0a227a10f8", "e49323cd", "93dc1f9b",
      "5102bbc7de959125"}},
    {255,
     16,
     {"3204dc6ed9e11bcea872a41c3ffd2e6b54acfa5a04bc4783e8c13fc4a2e8b594", "640bf66464eb5fcafd2c5cd8d4aab068c53d9599",
      "b2778183600fbeab1f29ba3dc9fbc888cdbca946", "b9cd5b881dd0c7da70e07f6f8ea29808", "9b67aa8b", "2dc0666c",
      "a5a4cf841ead914b"}},
    {256,
     17,
     {"e4bcc605acf9723658545e45126e64887d8d3c9091bfa241816f56ae678be8e6", "128a42f0ab8232b0680e8f9df3c94c15624c27f2",
      "804d3ebb16e10a627c5e81d6bf2deacf55f8de35", "214661958381a3f840c3f08dfb63502a", "0a1eda36", "bd4130df",
      "e2b72d87753e23ba"}},
    {257,
     18,
     {"aef2a5ba95f3d73b9a65c67fe5444d5210bd6b0a5dbc2fd428198433a9e90e63", "6f9ec726c764f159dadf2798dfed8c3453a605c3",
      "9cb3e858b93a0f7a7db510e3225f952f8d68bac4", "333ba460af3ac09c19c8aa59167b8c82", "ad86f0ed", "c862cf4e",
      "0867f8e3fbcf704a"}},
    {383,
     19,
     {"d9fbba48ad4b83df44c8ddcf429ef94f7eccbed16a271661cef1c2584f4bff86", "055a647ffed015580bf7db99999671ff7575bfb3",
      "4f4819f189450526278662136873d75ba7b3c3a9", "9c557c0e165ebadbb8ce17854287f907", "934576db", "0bae15ca",
      "3e28f329d88d1070"}},
    {511,
     20,
     {"44b646a421e73abd73c82c02ccd22ca56f19e69afbb8f78a7bc61c333ec8f9f3", "3bd1b441fdc5ded1c933e138f35b340478fd4fee",
      "9ef2ddaca74b1411d3da2aa3f16a966c7839e43f", "ff89db6b4fa585c4f22a3183686bf866", "79ddbbcd", "abfe4819",
      "2944b2af0f9763be"}},
    {1023,
     21,
     {"586357cccc680e7dedebf05ae8f8e540b46f153f52421c8ba6d550d130aa9132", "0b735286a650e67ba1bf731920da7ff863ea783e",
      "22d990b034934d55a041116d657077bf73beba0b", "65a6ad36102679b8a6205346f23412a9", "d745959a", "cb7a549d",
      "cbc7a64173b512ff"}},
    {1024,
     22,
     {"1b183fb67da24bca9093fb3255d67b712513eddab47ab0213ab66cdbd5dbb9c5", "25256a59b39fb329c1a4934d0068ba4fcdce2dc4",
      "6c75678bc7693cb510d6245a843f0e9bfe0f9489", "46362962540f152c82b83713026ec771", "ca063424", "29745fad",
      "47fbd6e1ed5bbd35"}},
    {1025,
     23,
     {"e5e0002f8120da4455ac429e662a8081980d6080799e5fb889460bb22e719c6d", "5b022a79bb57aafb5b2076354def31681da10081",
      "d2dedd466630b0572a20ac34abf8c398cfb5e9b1", "134962da2bd5f64672e310fb2790cc0b", "7a51a639", "cc4d56bd",
      "912e5ea05d1f5ec4"}},
    {4095,
     24,
     {"2ef343b37177905d0e0833530c1db54c1e042aee6947d04edea049fa85f35ab3", "131d281d619d97398dfeb67be2d704fdc644e0ad",
      "a2597df42537c490f292544cb7dd0a2510bff5b4", "cb4339c66d63510791be197f7f21996d", "495b2d91", "fa806d31",
      "00b00ed897e0116c"}},
    {4097,
     25,
     {"4e67bd1d1e5ebb3c059c0ca76a98ca46cc63c349c479c8b145bfa865b197961a", "8cdd054c9eecd5b7155dfbb0dda30490cf76842f",
      "a36f2689cf9692fdd9be2ce1a14e3ec5d8d28efb", "b7190856aa7e687d2c19a71937fcc6fe", "70a3f966", "4c6b1d36",
      "72bb79a598445ebe"}},
    {65535,
     26,
     {"4d8791dff027d317d03682264509b5fcc5dfbc347f1fa8816d08aae1868f5396", "44db0a2699474f2c6f068ffefb02e300a4662cd0",
      "c8a8c3ac016a4f8f70633a8662ad12c3d299da5e", "8e2ea186528d2a11bfec072e218023c7", "a68e10d2", "fe61e828",
      "a406328890333d40"}},
    {65537,
     27,
     {"6ae6434a4d3734fccb6fefbde28019ecd7b1b78ac95737241fb65eddf0ff2604", "b49e5418e2a69fda74b6f2b3254ce85842043611",
      "66c5acd672bf1831cb781e3ab88ca3b85955baab", "82ea10d96fde80e6b14796378b4705f8", "98cf73a8", "5fc97f74",
      "b1f881ebbee1341b"}},
    {1000003,
     28,
     {"e5a41960ccf3ae42ad2f1f2dff0c88910ecb1fe069f992289ce3bc8e307ddef8", "4907f234b6a4265f0d9f645159f01c6892b153f5",
      "0f2015b3a7774e4596779b7c5e91c7b72d9ee970", "13fd44445c374c7eddc045d21145dcf0", "46c6b964", "b7328b71",
      "eafed602ac0f3e4d"}},
};

TEST(Digest, HashesAgreeWithTheVectors) {
  for (const Vector& vector : kVectors) {
    const std::string bytes = MadeBytes(vector.size, vector.seed);
    for (size_t i = 0; i < std::size(kAll); ++i) {
      EXPECT_EQ(ToHex(HashOf(kAll[i], bytes)), vector.hashes[i]) << vector.size << " bytes, " << HashName(kAll[i]);
    }
  }
}

TEST(Digest, HashesAgreeWithTheirStandards) {
  const struct {
    HashKind kind;
    std::string_view text, hex;
  } rows[] = {
      {HashKind::kCrc32, "123456789", "cbf43926"},
      {HashKind::kCrc32c, "123456789", "e3069283"},
      {HashKind::kCrc64Nvme, "123456789", "ae8b14860a799888"},
      {HashKind::kMd5, "abc", "900150983cd24fb0d6963f7d28e17f72"},
      {HashKind::kSha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
      {HashKind::kSha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {HashKind::kGitBlob, "test content\n", "d670460b4b4aece5915caf5c68d12f560a9fe3e4"},  // Pro Git, 10.2
      {HashKind::kGitBlob, "", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"},
      {HashKind::kCrc32c, "", "00000000"},
  };
  for (const auto& row : rows) EXPECT_EQ(ToHex(HashOf(row.kind, row.text)), row.hex) << row.text;
}

TEST(Digest, CrcOfRfc3720) {  // Source: RFC 3720 B.4
  std::string rising(32, '\0');
  for (int i = 0; i < 32; ++i) rising[i] = static_cast<char>(i);
  EXPECT_EQ(ToHex(HashOf(HashKind::kCrc32c, std::string(32, '\0'))), "8a9136aa");
  EXPECT_EQ(ToHex(HashOf(HashKind::kCrc32c, std::string(32, '\xff'))), "62a8ab43");
  EXPECT_EQ(ToHex(HashOf(HashKind::kCrc32c, rising)), "46dd794e");
  EXPECT_EQ(ToHex(HashOf(HashKind::kCrc32c, std::string(rising.rbegin(), rising.rend()))), "113fdb5c");
}

TEST(Digest, AHashInPiecesIsThatOfTheWhole) {
  std::mt19937 random(1);
  for (const Vector& vector : kVectors) {
    const std::string bytes = MadeBytes(vector.size, vector.seed);
    for (size_t i = 0; i < std::size(kAll); ++i) {
      auto hasher = Hasher::Make(kAll[i], bytes.size());
      for (std::string_view rest = bytes; !rest.empty();) {
        const size_t most = random() % 3 == 0 ? 7 : rest.size();
        const size_t piece = random() % (std::min(most, rest.size()) + 1);
        hasher->Update(rest.substr(0, piece));
        rest.remove_prefix(piece);
      }
      EXPECT_EQ(ToHex(hasher->Finish()), vector.hashes[i]) << vector.size << " bytes, " << HashName(kAll[i]);
    }
  }
}

TEST(Digest, CombineEqualsOnePass) {
  std::mt19937 random(2);
  for (HashKind kind : kCombining) {
    for (const Vector& vector : kVectors) {
      const std::string bytes = MadeBytes(vector.size, vector.seed);
      const std::string whole = HashOf(kind, bytes);
      for (int i = 0; i < 40; ++i) {
        const size_t split = i == 0 ? 0 : i == 1 ? bytes.size() : random() % (bytes.size() + 1);
        const std::string a = HashOf(kind, std::string_view(bytes).substr(0, split));
        const std::string b = HashOf(kind, std::string_view(bytes).substr(split));
        EXPECT_EQ(Combine(kind, a, b, bytes.size() - split), whole) << HashName(kind) << " " << split;
      }
    }
  }
}

TEST(Digest, CombineAssociates) {
  const std::string bytes = MadeBytes(10'000, 3);
  const std::string_view a(bytes.data(), 1'234), b(bytes.data() + 1'234, 5'000), c(bytes.data() + 6'234, 3'766);
  for (HashKind kind : kCombining) {
    const std::string ha = HashOf(kind, a), hb = HashOf(kind, b), hc = HashOf(kind, c);
    const std::string left = Combine(kind, Combine(kind, ha, hb, b.size()), hc, c.size());
    EXPECT_EQ(left, Combine(kind, ha, Combine(kind, hb, hc, c.size()), b.size() + c.size()));
    EXPECT_EQ(left, HashOf(kind, bytes));
  }
}

// Lengths that are too long to hash in a test: runs of 2^n zeros, combined from the values of shorter runs.
TEST(Digest, CombineOfLongRuns) {
  for (HashKind kind : kCombining) {
    std::vector<std::string> runs = {HashOf(kind, std::string(1, '\0'))};
    for (int n = 0; n < 63; ++n) runs.push_back(Combine(kind, runs[n], runs[n], uint64_t{1} << n));
    EXPECT_EQ(runs[20], HashOf(kind, std::string(1 << 20, '\0')));
    for (int n = 2; n < 64; ++n) {
      const uint64_t half = uint64_t{1} << (n - 1), quarter = half / 2;
      const std::string three_quarters = Combine(kind, runs[n - 1], runs[n - 2], quarter);
      EXPECT_EQ(Combine(kind, three_quarters, runs[n - 2], quarter), runs[n]) << n;
      EXPECT_EQ(Combine(kind, runs[n - 2], three_quarters, half + quarter), runs[n]) << n;
    }
  }
}

TEST(Digest, EachHashIsFoundByItsName) {
  for (HashKind kind : kAll) {
    EXPECT_EQ(FindHash(HashName(kind)), kind);
    EXPECT_EQ(HashOf(kind, "x").size(), HashBytes(kind));
    EXPECT_TRUE(HashAvailable(kind)) << HashName(kind);
  }
  EXPECT_EQ(FindHash("SHA256"), std::nullopt);
  EXPECT_EQ(FindHash(""), std::nullopt);
}

// As on a machine with a FIPS policy.
TEST(Digest, WhatOpenSslRefusesIsNotChecked) {
  const Expectation md5 = {HashKind::kMd5, std::string(16, 'x'), 0};
  const Expectation crc = {HashKind::kCrc32c, "abcd", 0};
  EXPECT_EQ(Checkable(md5), md5);
  ASSERT_EQ(EVP_set_default_properties(nullptr, "fips=yes"), 1);
  EXPECT_FALSE(HashAvailable(HashKind::kMd5));
  EXPECT_EQ(Checkable(md5), std::nullopt);
  EXPECT_EQ(Checkable(crc), crc);
  EXPECT_EQ(*ParseExpectation(Describe(md5)), md5) << "what a manifest says can be read all the same";
  ASSERT_EQ(EVP_set_default_properties(nullptr, ""), 1);
  EXPECT_TRUE(HashAvailable(HashKind::kMd5));
}

TEST(Digest, AnExpectationIsWrittenAndReadBack) {
  const Expectation whole = {HashKind::kCrc32c, "\x01\x02\x03\xff", 0};
  EXPECT_EQ(Describe(whole), "crc32c:010203ff");
  const Expectation parts = {HashKind::kMd5, std::string(16, '\xab'), 8'388'608};
  EXPECT_EQ(Describe(parts), "md5/8388608:abababababababababababababababab");
  EXPECT_EQ(*ParseExpectation(Describe(whole)), whole);
  EXPECT_EQ(*ParseExpectation(Describe(parts)), parts);
  const struct {
    std::string_view text, error;
  } rows[] = {
      {"", "'' is not a hash: it is written NAME:HEX"},
      {"crc32c", "'crc32c' is not a hash: it is written NAME:HEX"},
      {"sha512:00", "'sha512:00' is of an unknown hash; known: sha256"},
      {"crc32c:0102", "'crc32c:0102' is not a hash: crc32c has 8 hex digits"},
      {"crc32c:010203ff00", "crc32c has 8 hex digits"},
      {"crc32c:010203fx", "'010203fx' is not hex"},
      {"crc32c/0:010203ff", "after the / comes the size of a part in bytes"},
      {"crc32c/-1:010203ff", "after the / comes the size of a part in bytes"},
      {"crc32c/99999999999999999999:010203ff", "after the / comes the size of a part in bytes"},
      {"git-blob/8:e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "git's ids have no parts"},
  };
  for (const auto& row : rows) {
    auto parsed = ParseExpectation(row.text);
    ASSERT_FALSE(parsed.ok()) << row.text;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(parsed.status())), HasSubstr(row.error));
  }
}

TEST(Digest, HexIsWrittenAndReadBack) {
  EXPECT_EQ(ToHex(std::string_view("\x00\x1f\xff", 3)), "001fff");
  EXPECT_EQ(*FromHex("001fFF"), std::string("\x00\x1f\xff", 3));
  EXPECT_EQ(*FromHex(""), "");
  for (std::string_view bad : {"0", "0g", "g0", " 0", "0x", "+1"}) EXPECT_FALSE(FromHex(bad).ok()) << bad;
}

}  // namespace
}  // namespace muster::initializers
