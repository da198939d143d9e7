// What the headers of an S3 object tell of its content: checksums and ETag. Pure; outside bytes.
//
// Sources: S3 User Guide, "Checking object integrity"; initializers.md 2.1, 2.2 (what servers differ in).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "initializers/digest.h"

namespace muster::initializers {

// Names in lower case -> value.
using HeaderReader = std::function<std::optional<std::string>(std::string_view name)>;

// What HEAD or GET tells of the whole object's content, the best first: a full-object SHA-256, SHA-1 or CRC; a
// composite one where the part size is known; an ETag that is an MD5 (single part; not KMS, SSE-C, Express); a
// multipart ETag with its part size. Nothing: size and version are all that is known. A value of the wrong length, or
// that contradicts x-amz-checksum-type, is as good as none.
//
// `headers`: of the object; checksums of a part or a range (Content-Range, x-amz-mp-parts-count) are not taken for the
// whole's. `part_size`: Content-Length of a HEAD with partNumber=1; 0: unknown, where a single part is the object. A
// number of parts that does not fit size and part size is no use. Parts of unequal lengths can pass for equal ones: a
// mismatch with a composite value alone is no proof of damage.
std::optional<Expectation> ExpectationOf(const HeaderReader& headers, std::string_view etag, uint64_t size,
                                         uint64_t part_size);
// The best that could be had is a composite value or a multipart ETag, and needs the part size to be of use.
bool NeedsPartSize(const HeaderReader& headers, std::string_view etag);

}  // namespace muster::initializers
