// SPDX-License-Identifier: Apache-2.0
#include "agent/watch/preempt_rules.h"

#include <algorithm>

#include "base/json_fields.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster::agent {
namespace {

using Kind = NoticeVerdict::Kind;

constexpr std::string_view kScheme = "http://";
constexpr std::string_view kWaits = "wait_for_change=true";
constexpr size_t kLongestQuote = 80;

// An answer's text, made fit for one line of a log.
std::string Quote(std::string_view text) {
  std::string quoted;
  text = Strip(text);
  while (!text.empty() && quoted.size() < kLongestQuote) {
    Utf8Character next = FirstCharacter(text);
    quoted += next.valid && next.code >= ' ' && next.code != 0x7f ? text.substr(0, next.size) : std::string_view("?");
    text.remove_prefix(next.size);
  }
  return text.empty() ? quoted : quoted + "...";
}

std::string With(const std::string& what, const std::string& when) {
  return when.empty() ? Quote(what) : fmt::format("{} at {}", Quote(what), Quote(when));
}

// 2026-01-02T03:04:05Z
bool IsMoment(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:ddZ";
  return text.size() == kShape.size() && std::equal(text.begin(), text.end(), kShape.begin(), [](char c, char shape) {
           return shape == 'd' ? c >= '0' && c <= '9' : c == shape;
         });
}

NoticeVerdict JudgeEvents(const Json& events) {
  NoticeVerdict verdict;
  for (const Json& event : events) {
    std::string type = TextField(event, "EventType");
    if (type != "Preempt" && type != "Terminate") continue;
    verdict.kind = Kind::kNotice;
    verdict.what = With(type, TextField(event, "NotBefore"));
    const Json* machines = FindField(event, "Resources");
    if (machines == nullptr || !machines->is_array() || machines->empty()) {
      verdict.machines.clear();
      return verdict;  // an event without machines is for this one
    }
    for (const Json& machine : *machines) {
      if (machine.is_string()) verdict.machines.push_back(machine.get<std::string>());
    }
  }
  if (!verdict.machines.empty()) verdict.kind = Kind::kNoticeOf;
  return verdict;
}

NoticeVerdict Trouble(std::string what) { return {Kind::kTrouble, std::move(what), {}}; }

}  // namespace

StatusOr<HttpUrl> ParseHttpUrl(std::string_view url) {
  auto bad = [](std::string_view why) { return absl::InvalidArgumentError(std::string(why)); };
  if (!url.starts_with(kScheme)) return bad("want http://HOST[:PORT]/PATH; metadata services speak plain HTTP");
  if (std::any_of(url.begin(), url.end(), [](unsigned char c) { return c <= ' ' || c >= 0x7f; })) {
    return bad("a URL has no blanks and no control characters; write them as %20");
  }
  if (url.find('#') != std::string_view::npos) return bad("a URL here has no fragment (#)");
  url.remove_prefix(kScheme.size());
  std::string_view authority = url.substr(0, url.find_first_of("/?"));
  HttpUrl parsed;
  parsed.target = url.substr(authority.size());
  if (!parsed.target.starts_with('/')) parsed.target.insert(0, "/");
  if (authority.find('@') != std::string_view::npos) return bad("user names and passwords (@) are not supported");
  size_t bracket = authority.rfind(']');
  size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  parsed.host = authority.substr(0, colon);
  if (parsed.host.starts_with('[') && parsed.host.ends_with(']')) {
    parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  }
  if (parsed.host.empty()) return bad("the host is missing: want http://HOST[:PORT]/PATH");
  if (colon == std::string_view::npos) return parsed;
  auto port = ParseInt(authority.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) return bad("the port must be a number from 1 to 65535");
  parsed.port = static_cast<int>(*port);
  return parsed;
}

NoticeVerdict JudgeNotice(int status, std::string_view body) {
  body = Strip(body);
  if (status == 401) return {Kind::kToken, "", {}};
  if (status == 404 || status == 410 || status == 204) return {};
  if (status != 200) return Trouble(fmt::format("answers with HTTP status {}", status));
  std::string word = Lower(body);
  if (word.empty() || word == "false" || word == "none" || word == "migrate_on_host_maintenance") return {};
  if (word == "true" || word == "terminate_on_host_maintenance") return {Kind::kNotice, Quote(body), {}};
  if (IsMoment(body)) return {Kind::kNotice, fmt::format("the end at {}", body), {}};
  const Json document = ReadJsonTop(body, kFieldLevels);
  const Json* events = FindField(document, "Events");
  if (events != nullptr && events->is_array()) return JudgeEvents(*events);
  const std::string action = TextField(document, "action");
  if (action == "terminate" || action == "stop" || action == "hibernate") {
    return {Kind::kNotice, With(action, TextField(document, "time")), {}};
  }
  if (action == "none") return {};
  return Trouble(fmt::format("answers with text that is not a known notice: {}", Quote(body)));
}

bool IsLongPoll(std::string_view target) {
  size_t question = target.find('?');
  if (question == std::string_view::npos) return false;
  std::vector<std::string_view> parts = Split(target.substr(question + 1), '&');
  return std::find(parts.begin(), parts.end(), kWaits) != parts.end();
}

std::string FirstTarget(std::string_view target) {
  if (!IsLongPoll(target)) return std::string(target);
  size_t question = target.find('?');
  std::string first;
  for (std::string_view part : Split(target.substr(question + 1), '&')) {
    if (part != kWaits) first += fmt::format("{}{}", first.empty() ? '?' : '&', part);
  }
  return std::string(target.substr(0, question)) + first;
}

std::string NextTarget(std::string_view target, std::string_view etag) {
  bool plain = !etag.empty() && etag.size() <= 128 && std::all_of(etag.begin(), etag.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  });
  if (!IsLongPoll(target) || !plain) return std::string(target);
  return fmt::format("{}&last_etag={}", target, etag);
}

}  // namespace muster::agent
