// An XML document from a server, element by element as they end. By expat. Pure; outside bytes.
//
// Well-formed or refused; no DTD, so that no entity is left but XML's own five; depth, names and texts are bounded. The
// document's size is up to whoever reads it from the network.
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

// `path`: names from the root on, without namespaces: "ListBucketResult/Contents/Key". `text`: what stands between the
// element's last inner tag and its end: all of it where it holds no other. An error ends the reading.
using XmlElementEnd = std::function<Status(std::string_view path, std::string_view text)>;

// InvalidArgument names line and reason, and shows how a document begins that is no XML at all: a login page, say. What
// stood before the fault has been handed out by then.
Status ReadXml(std::string_view xml, const XmlElementEnd& ended);

// "a/b/c" below "a/b": "c".
std::optional<std::string_view> Below(std::string_view path, std::string_view parent);

}  // namespace muster::initializers
