// Outside text in messages: object names, URIs, headers. Pure.
#pragma once

#include <string>
#include <string_view>

namespace muster {

inline constexpr size_t kMostQuoted = 200;  // bytes that are shown

// 'text', on one line and in UTF-8: control characters and what is no UTF-8 become \xNN, a long text is cut ("...").
std::string Quoted(std::string_view text, size_t most = kMostQuoted);

// The last lines of what a program has said, as 'one / two': as many as fit into `most` bytes, and the last one anyway.
std::string QuotedEnd(std::string_view said, size_t most = kMostQuoted);

}  // namespace muster
