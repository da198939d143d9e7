// What the headers of an S3 object tell of its content: checksums and ETag. Pure; outside bytes.
//
// Sources: S3 User Guide, "Checking object integrity".
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
// whole's. `part_size`: by PartSize; 0: unknown, where a single part is the object. A number of parts that does not fit
// size and part size is no use.
std::optional<Expectation> ExpectationOf(const HeaderReader& headers, std::string_view etag, uint64_t size,
                                         uint64_t part_size);
// The number of parts, where the best that could be had is a composite value or a multipart ETag of several, and needs
// their size to be of use; else 0.
uint64_t PartsToMeasure(const HeaderReader& headers, std::string_view etag);

// The length of each part but the last, by those of the first and the last (Content-Length of HEAD with partNumber); 0:
// they are not of one length, as in an object that was put together of others. Of four parts and more those between may
// still be unequal and come out even: a mismatch is no damage before each of them was measured.
uint64_t PartSize(uint64_t size, uint64_t parts, uint64_t first, uint64_t last);

}  // namespace muster::initializers
