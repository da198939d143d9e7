// SPDX-License-Identifier: Apache-2.0
// Reads an XML document from a server with expat, and reports each element when it ends. Pure; untrusted input.
//
// A document that is not well-formed is refused. So is one with a DTD: only the five entities of XML itself remain.
// Depth, names and texts are bounded. The caller that reads from the network bounds the size of the document.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::initializers {

inline constexpr size_t kDeepestXml = 16;                    // elements within each other
inline constexpr size_t kLongestXmlName = 128;               // bytes, without the namespace
inline constexpr size_t kLongestXmlText = size_t{64} << 10;  // bytes in one element; an S3 key has at most 1024

// `path`: the names from the root on, without namespaces: "ListBucketResult/Contents/Key". `text`: the text between the
// last inner tag of the element and its end; the whole text if it has no inner element. An error ends the reading.
using XmlElementEnd = std::function<Status(std::string_view path, std::string_view text)>;

// InvalidArgument names the line and the reason. If the document is not XML at all (a login page), it shows how the
// document begins. Elements before the fault have been reported by then.
Status ReadXml(std::string_view xml, const XmlElementEnd& ended);

// "a/b/c" below "a/b": "c".
std::optional<std::string_view> Below(std::string_view path, std::string_view parent);

}  // namespace muster::initializers
