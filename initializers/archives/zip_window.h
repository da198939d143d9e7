// How much memory reading a zip's member takes for its window, beside what every member takes. Pure.
//
// Deflate and bzip2 have none to speak of. Of xz it is the first block's: those who write zips write one.
// Sources: APPNOTE 6.3.10 5.8 (LZMA), 5.10 (PPMd); the .xz file format 1.2.0; RFC 8878.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster::initializers {

inline constexpr size_t kMemberHeader = 12 + 1024;  // bytes that may say it: .xz's headers of a stream and a block

// Bytes, for a member of `size` that begins with `data`, compressed. `method`: as libarchive names it, "lzma", "xz",
// "ppmd-8", "zstd". 0: it has none, or is broken.
uint64_t WindowOfMember(std::string_view method, std::string_view data, uint64_t size);

}  // namespace muster::initializers
