// SPDX-License-Identifier: Apache-2.0
// Computes how much memory the window of a zip member needs, in addition to what every member needs. Pure.
//
// Deflate and bzip2 need almost none. For xz it is the window of the first block: programs that write zips write one
// block. Sources: APPNOTE 6.3.10 5.8 (LZMA), 5.10 (PPMd); the .xz file format 1.2.0; RFC 8878.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster::initializers {

inline constexpr size_t kMemberHeader = 12 + 1024;  // bytes that suffice: .xz's headers of a stream and a block

// The size in bytes, for a member of `size` bytes whose compressed data begins with `data`. `method`: libarchive's
// name: "lzma", "xz", "ppmd-8", "zstd". 0: it needs no window, or its data is damaged.
uint64_t WindowOfMember(std::string_view method, std::string_view data, uint64_t size);

}  // namespace muster::initializers
