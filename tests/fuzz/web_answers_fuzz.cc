// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the head of a server's answer to a range request: Content-Range, digests, ETag. The input is the status,
// then headers "name: value", a line each.
#include "base/base64.h"
#include "base/text.h"
#include "initializers/stores/answer_checks.h"
#include "initializers/stores/web_file.h"
#include "tests/fuzz/input.h"

namespace muster::initializers {
namespace {

http::ResponseHead HeadOf(std::string_view text) {
  http::ResponseHead head;
  const auto lines = Split(text, '\n');
  head.status = lines.empty() ? 0 : static_cast<int>(ParseInt(lines[0]).value_or(206) % 600);
  for (size_t line = 1; line < lines.size(); ++line) {
    const size_t colon = lines[line].find(':');
    if (colon == std::string_view::npos) continue;
    head.headers.emplace_back(Lower(lines[line].substr(0, colon)), Strip(lines[line].substr(colon + 1)));
  }
  return head;
}

void Fuzz(std::string_view text) {
  const http::ResponseHead head = HeadOf(text);
  constexpr uint64_t kSize = 1000;
  for (const ByteRange range : {ByteRange{0, kSize}, ByteRange{0, 1}, ByteRange{10, 90}, ByteRange{999, 1}}) {
    if (RangeProblem(head, range, kSize)) continue;
    // An accepted answer says that it has the range: as a part, or as the whole if the range is the whole.
    const std::string said(head.Find("content-range").value_or(""));
    const std::string expected = fmt::format("bytes {}-{}/", range.offset, range.end() - 1);
    Must(head.status == 206 ? said == expected + "*" || said == expected + "1000"
                            : head.status == 200 && range.offset == 0 && range.length == kSize);
    if (head.status == 200 && head.Find("content-length")) Must(head.ContentLength() == kSize);
  }
  if (const auto size = SizeOfPart(head)) Must(head.status == 206 ? *size > 0 : head.status == 416 && *size == 0);
  for (const bool whole : {false, true}) {
    const auto digest = DigestOf(head, whole);
    if (!digest) continue;
    Must(digest->value.size() == HashBytes(digest->kind) && digest->part_size == 0);
    Must(head.Find("repr-digest") || (whole && head.Find("content-digest")));
  }
  for (const auto& [name, value] : head.headers) {
    const auto digest = ParseDigestHeader(value);
    if (digest) Must(value.find(ToBase64(digest->value).substr(0, 4)) != std::string::npos);
  }
  const std::string etag(head.Find("etag").value_or(""));
  Must(!IsOtherVersion(head, "etag", etag) && !IsOtherVersion(head, "etag", ""));
  (void)IsPageInstead(head, "a/model.bin", true);
  const auto pause = http::AskedBy(head, 1'795'309'323);
  Must(!pause || *pause >= Duration::zero());
}

}  // namespace
}  // namespace muster::initializers

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::initializers::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
