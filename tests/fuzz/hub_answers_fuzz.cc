// SPDX-License-Identifier: Apache-2.0
// libFuzzer: answers of the hub. The first byte chooses: a revision, its files, a Link, an error; else a page of a
// tree.
#include "base/text.h"
#include "http/endpoint_url.h"
#include "initializers/stores/hub_answers.h"
#include "tests/fuzz/input.h"

namespace muster::initializers {
namespace {

void Files(const StatusOr<std::vector<Entry>>& entries) {
  if (!entries.ok()) return;
  for (const Entry& entry : *entries) {
    Must(!entry.path.empty() && entry.path == entry.key && entry.expected.has_value());
    Must(entry.size <= uint64_t{1} << 63 && entry.expected->value.size() == HashBytes(entry.expected->kind));
    Must(entry.version == ToHex(entry.expected->value));
  }
}

void Revision(std::string_view json) {
  auto commit = ParseRevision(json);
  if (commit.ok()) Must(IsCommit(*commit));
}

// `text` is a Link header. Its target is resolved against the URL of a page.
void Link(std::string_view text) {
  const auto next = NextLink(text);
  if (!next) return;
  Must(!next->empty() && text.find(*next) != std::string_view::npos);
  const std::string url = http::ResolveUrl("https://hub.example/api/models/a/b/tree/main?x", *next);
  const auto origin = http::OriginOf(url);
  if (origin) Must(http::OriginOf(*origin) == origin && origin->find('@') == std::string::npos);
}

// The input: the status, headers "name: value" a line each, an empty line, the body.
void Error(std::string_view text) {
  http::ResponseHead head;
  const auto lines = Split(text, '\n');
  size_t line = 0;
  if (!lines.empty()) head.status = static_cast<int>(ParseInt(lines[line++]).value_or(404) % 600);
  for (; line < lines.size() && !lines[line].empty(); ++line) {
    const size_t colon = lines[line].find(':');
    if (colon == std::string_view::npos) continue;
    head.headers.emplace_back(Lower(lines[line].substr(0, colon)), Strip(lines[line].substr(colon + 1)));
  }
  const size_t body = text.find("\n\n");
  const http::Refusal refusal =
      RefusalOfHub(head, body == std::string_view::npos ? "" : text.substr(body + 2), "hf://a/b", line % 2 == 0, 1);
  Must(!refusal.status.ok() && Message(refusal.status).size() < 4096);
  Must(Message(refusal.status).find_first_of("\r\n") == std::string_view::npos);
  if (refusal.asked) Must(*refusal.asked >= Duration::zero());
}

}  // namespace
}  // namespace muster::initializers

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::initializers;
  const auto [choice, text] = Choose(data, size);
  switch (choice) {
    case 'r':
      Revision(text);
      break;
    case 's':
      Files(ParseSiblings(text));
      break;
    case 'l':
      Link(text);
      break;
    case 'e':
      Error(text);
      break;
    default:
      Files(ParseTree(text));
  }
  return 0;
}
