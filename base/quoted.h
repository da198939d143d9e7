// SPDX-License-Identifier: Apache-2.0
// Quotes untrusted text for messages: object names, URIs, headers. Pure.
#pragma once

#include <string>
#include <string_view>

namespace muster {

inline constexpr size_t kMostQuoted = 200;  // bytes that are shown

// 'text', on one line and in UTF-8. Control characters and invalid bytes become \xNN; a long text is cut ("...").
std::string Quoted(std::string_view text, size_t most = kMostQuoted);

// The last lines of a program's output as 'one / two': all that fit into `most` bytes, or the last one, cut.
std::string QuotedEnd(std::string_view said, size_t most = kMostQuoted);

}  // namespace muster
