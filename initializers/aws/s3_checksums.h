// SPDX-License-Identifier: Apache-2.0
// What the headers of an S3 object say about its content: checksums and ETag. Pure; untrusted input.
//
// Sources: S3 User Guide, "Checking object integrity".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "initializers/facts/digest.h"

namespace muster::initializers {

// Returns the value of a header; `name` is in lower case.
using HeaderReader = std::function<std::optional<std::string>(std::string_view name)>;

// The best hash of the whole object in the headers of HEAD or GET, in this order: a full-object SHA-256, SHA-1 or CRC;
// a composite one if the part size is known; an ETag that is an MD5 (single part; not KMS, SSE-C, Express); a multipart
// ETag with its part size. Nullopt: only size and version are known. A value of the wrong length, or one that
// contradicts x-amz-checksum-type, is ignored.
//
// `headers`: of the object; the checksum of a part or a range (Content-Range, x-amz-mp-parts-count) is not taken for
// the checksum of the whole. `part_size`: from PartSize; 0: unknown, then a composite hash counts only with one part. A
// number of parts that does not fit size and part size is ignored.
std::optional<Expectation> ExpectationOf(const HeaderReader& headers, std::string_view etag, uint64_t size,
                                         uint64_t part_size);
// The number of parts if the best hash is a composite value or a multipart ETag of several, whose size it needs; else
// 0.
uint64_t PartsToMeasure(const HeaderReader& headers, std::string_view etag);

// The length of each part but the last, from the lengths of the first and the last part (Content-Length of HEAD with
// partNumber). 0: the lengths differ, as in an object composed of others. With four or more parts, those between may
// still differ: a mismatch proves damage only after each part was measured.
uint64_t PartSize(uint64_t size, uint64_t parts, uint64_t first, uint64_t last);

}  // namespace muster::initializers
