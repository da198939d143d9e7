// SPDX-License-Identifier: Apache-2.0
#include "agent/page/file_link.h"

#include "agent/report/report_text.h"
#include "base/text.h"

namespace muster::agent {
namespace {

// For a path in a URL: all but letters, digits, "-._~" and "/" become %XX.
std::string UrlPath(std::string_view path) {
  std::string url;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    url += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return url;
}

// What is below `place`; "": it is not.
std::string_view Below(std::string_view path, std::string_view place) {
  if (place == ".") return path.starts_with('/') || path.starts_with("..") ? "" : path;
  while (place.size() > 1 && place.ends_with('/')) place.remove_suffix(1);
  if (place.empty() || !path.starts_with(place)) return "";
  path.remove_prefix(place.size());
  if (!place.ends_with('/') && !path.starts_with('/')) return "";
  while (path.starts_with('/')) path.remove_prefix(1);
  return path;
}

}  // namespace

std::string PathLink(std::string_view path, std::string_view place) {
  const std::string text = fmt::format("<code>{}</code>", EscapeHtml(path));
  const std::string_view below = Below(path, place);
  return below.empty() ? text : fmt::format("<a href=\"./{}\">{}</a>", UrlPath(below), text);
}

std::string FolderOfFile(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

}  // namespace muster::agent
