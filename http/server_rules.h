// SPDX-License-Identifier: Apache-2.0
// The rules by which http/server.h bounds what its clients take, and by which it reads the framing of a request. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/headers.h"

namespace muster::http {

// What a connection does.
enum class Stage {
  kNew,        // it has not sent one whole request yet
  kIdle,       // between two requests
  kReceiving,  // a later request of it comes
  kAnswering,  // from the last byte of a request to the last byte of its answer
};

// One connection, as these rules see it.
struct Guest {
  std::string_view address;  // the peer's, without the port
  Stage stage = Stage::kNew;
  TimePoint since;   // when the stage, or the request that comes, began
  size_t bytes = 0;  // of its request
};

// The connection that is closed for a new one. The address yields that has the most connections that are not being
// answered: of these the first in the order of Stage, and the oldest of that. So a crowd of one machine closes its own
// connections, not those of others. nullopt: all are being answered.
std::optional<size_t> YieldsConnection(std::span<const Guest> guests);

// The connection that is closed because all requests together are too large: of the address whose unfinished requests
// have the most bytes, the one that began first. nullopt: no request is unfinished.
std::optional<size_t> YieldsMemory(std::span<const Guest> guests);

// When a request must have come as a whole, if `bytes` of it have come: 3 s after its first byte, and 1 s more for each
// 64 KiB, but not after `limit`.
TimePoint DueBy(TimePoint first_byte, size_t bytes, TimePoint limit);

struct BadFraming {
  int status;
  std::string why;
};

// Refuses a request whose end another program could see elsewhere (RFC 9112, 6): a Transfer-Encoding other than
// "chunked", in HTTP/1.0, or beside a Content-Length; several of one of these or of Host; a Content-Length that is not
// a number. `minor`: of HTTP/1.x. `fields`: with names in lower case.
std::optional<BadFraming> JudgeFraming(int minor, const Headers& fields);

// Whether a line of `header` begins with a blank, that is, continues the line before (RFC 9112, 5.2: obsolete).
bool HasFoldedLine(std::string_view header);

}  // namespace muster::http
