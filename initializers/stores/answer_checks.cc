// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/answer_checks.h"

#include "base/text.h"

namespace muster::initializers {
namespace {

// The ETag without the weak mark (W/) and without quotes, which some servers leave out.
std::string_view OpaqueTag(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.starts_with('"') && etag.ends_with('"')) etag = etag.substr(1, etag.size() - 2);
  return etag;
}

}  // namespace

std::optional<uint64_t> SizeOfPart(const http::ResponseHead& head) {
  constexpr std::string_view kFirstByte = "bytes 0-0/", kNone = "bytes */0";
  const std::string_view said = head.Find("content-range").value_or("");
  if (head.status == 416 && said == kNone) return 0;  // there is no first byte
  if (head.status != 206 || !said.starts_with(kFirstByte)) return std::nullopt;
  const auto size = ParseInt(said.substr(kFirstByte.size()));
  return size && *size > 0 ? std::optional<uint64_t>(*size) : std::nullopt;
}

bool IsPageInstead(const http::ResponseHead& head, std::string_view path, bool unnamed) {
  const std::string type = Lower(head.Find("content-type").value_or(""));
  const std::string_view kind = Strip(std::string_view(type).substr(0, type.find(';')));
  if (kind != "text/html" && kind != "application/xhtml+xml") return false;
  const std::string name = Lower(path.substr(path.rfind('/') + 1));
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return unnamed;
  const std::string extension = name.substr(dot);
  return extension != ".html" && extension != ".htm" && extension != ".xhtml";
}

std::optional<std::string> RangeProblem(const http::ResponseHead& head, ByteRange range, uint64_t size) {
  const bool whole = range.offset == 0 && range.length == size;
  auto encoding = head.Find("content-encoding");
  if (head.status == 200 && whole) {
    auto length = head.Find("content-length");
    if (length && head.ContentLength() != size) return fmt::format("{} bytes in place of {}", *length, size);
    if (encoding && *encoding != "identity" && !length) return fmt::format("content encoding {}", *encoding);
    return std::nullopt;
  }
  if (head.status != 206) return fmt::format("status {}", head.status);
  auto said = head.Find("content-range");
  const std::string expected = fmt::format("bytes {}-{}/", range.offset, range.end() - 1);
  if (!said || !said->starts_with(expected)) {
    return fmt::format("range '{}' in place of '{}{}'", said.value_or(""), expected, size);
  }
  const std::string_view total = said->substr(expected.size());
  if (total != "*" && total != std::to_string(size)) return fmt::format("a size of {} in place of {}", total, size);
  return std::nullopt;
}

http::Refusal WrongRange(std::string_view where, int status) {
  return {http::Refusal::Kind::kTransient,
          absl::UnavailableError(fmt::format("{}: the answer ({}) is not the requested range", where, status)),
          {}};
}

bool IsOtherVersion(const http::ResponseHead& head, std::string_view header, std::string_view version) {
  const auto said = head.Find(header);
  return said && !version.empty() && OpaqueTag(*said) != OpaqueTag(version);
}

}  // namespace muster::initializers
