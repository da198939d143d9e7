// SPDX-License-Identifier: Apache-2.0
// Prints what the live page of a sample run is, for tests in a browser:
//   page_sample page NODES SLOTS TICK                  the page
//   page_sample events NODES SLOTS BEFORE TICK QUERY   the events from the tick BEFORE (-1: of a new stream) to TICK
//   page_sample bytes NODES SLOTS                      bytes of the events of one tick: all groups closed, all open
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "agent/page/live_page.h"
#include "base/text.h"
#include "tests/agent/page/live_sample.h"

namespace muster::agent {
namespace {

LiveContent Content(int nodes, int slots, int tick) {
  const LiveOptions options{
      .log_dir = "/logs/digits", .kube_namespace = "team-a", .is_indexed = true, .machine = "8 CPUs, 64 GiB"};
  return MakeLiveContent(SampleFacts({.nodes = nodes, .slots = slots, .tick = tick}), options);
}

std::string Bytes(int nodes, int slots) {
  const auto begin = std::chrono::steady_clock::now();
  const LiveContent before = Content(nodes, slots, 20), now = Content(nodes, slots, 21);
  const auto made = std::chrono::steady_clock::now();
  const std::string closed = LiveEvents(&before, now, {});
  const std::string open = LiveEvents(&before, now, ParseLiveRequest("open=all"));
  const auto told = std::chrono::steady_clock::now();
  const auto millis = [](auto span) { return std::chrono::duration<double, std::milli>(span).count(); };
  return fmt::format("page {} bytes; a second {} bytes closed, {} open; content {:.2f} ms, events {:.2f} ms\n",
                     LivePage(now).size(), closed.size(), open.size(), millis(made - begin) / 2,
                     millis(told - begin - (made - begin)) / 2);
}

}  // namespace
}  // namespace muster::agent

int main(int count, char** words) {
  using namespace muster::agent;
  const std::vector<std::string> of(words, words + count);
  const auto number = [&](size_t at) { return of.size() > at ? std::atoi(of[at].c_str()) : 0; };
  const std::string what = of.size() > 1 ? of[1] : "";
  std::string text;
  if (what == "page") text = LivePage(Content(number(2), number(3), number(4)));
  if (what == "bytes") text = Bytes(number(2), number(3));
  if (what == "events" && of.size() == 7) {
    const LiveContent before = Content(number(2), number(3), number(4));
    text = LiveEvents(number(4) < 0 ? nullptr : &before, Content(number(2), number(3), number(5)),
                      ParseLiveRequest(of[6]));
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return text.empty() ? 64 : 0;
}
