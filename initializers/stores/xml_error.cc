// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/xml_error.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"
#include "base/utf8.h"
#include "initializers/stores/xml_elements.h"

namespace muster::initializers {
namespace {

constexpr size_t kLongestCode = 128;
constexpr size_t kLongestMessage = 1024;
constexpr size_t kLongestHost = 253;

// Makes text of an XML document (UTF-8) fit for a message: bounded, without control characters.
std::string OneLine(std::string_view text, size_t most) {
  std::string line(Beginning(Strip(text), most));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

// Accepts text for a host name or a signature: letters, digits, '-' and the characters of `also`; else returns "".
std::string HostLike(std::string_view text, std::string_view also) {
  text = Strip(text);
  auto plain = [also](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || also.find(static_cast<char>(c)) != std::string_view::npos;
  };
  const bool good = text.size() <= kLongestHost && std::all_of(text.begin(), text.end(), plain);
  return good ? std::string(text) : std::string();
}

}  // namespace

XmlError ParseXmlError(std::string_view xml) {
  XmlError error;
  auto ended = [&error](std::string_view path, std::string_view text) {
    auto name = Below(path, "Error");
    if (!name) name = Below(path, "ErrorResponse/Error");
    if (!name) return absl::OkStatus();
    if (*name == "Code") {
      error.code = OneLine(text, kLongestCode);
    } else if (*name == "Message") {
      error.message = OneLine(text, kLongestMessage);
    } else if (*name == "Region") {
      error.region = HostLike(text, "");
    } else if (*name == "Endpoint") {
      error.endpoint = HostLike(text, ".:");
    }
    return absl::OkStatus();
  };
  // Elements before a fault are still useful.
  (void)ReadXml(xml, ended);
  return error;
}

}  // namespace muster::initializers
