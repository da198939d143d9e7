// SPDX-License-Identifier: Apache-2.0
// The page of a run that goes on: complete when it is loaded, also without scripts; its script then follows a stream of
// events that change parts of it. Pure.
//
//   GET /        LivePage(MakeLiveContent(facts, options))
//   GET /events  text/event-stream; once a second for each client
//                LiveEvents(what this client has, the newest content, ParseLiveRequest(query))
//
// The content is made once for all clients. A client keeps a reference to the content that it was sent last; one that
// reads slowly may leave any number out. On a first or a broken stream there is none, and all parts are sent but the
// table's skeleton, if the page says that it has it.
//
//   event: title    "text"                    the new title of the page
//   event: section  {"id","html"}             the new content of an element
//   event: cells    {"ID": [PLACE,"text",...]}  the new texts of the children of elements (rank_table.h)
//   event: tick     1                         ends each answer to the clock: the stream lives
//   event: moved    "sentence"                shown instead of "Live"; "" ends that
//   event: ended    "sentence"                the last event: the page stays as it is
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/page/live_facts.h"
#include "agent/page/rank_table.h"

namespace muster::agent {

// What a user must type to look closer.
struct LiveOptions {
  std::string log_dir;         // empty: there is none
  std::string kube_namespace;  // empty: the run is in no pod
  bool is_indexed = false;     // the pods are those of an Indexed Job: their names end with what only the cluster knows
  std::string machine;         // that answers, in a few words; empty: not known
};

struct LiveContent {
  struct Section {
    std::string id, html;  // html: the content of the element
    bool operator==(const Section&) const = default;
  };
  std::string title, name;        // name: of the job, as the title has it
  std::vector<Section> sections;  // the same ids in the same order in each content
  RankTable table;                // of the section "nodes", which is not among `sections`
};
LiveContent MakeLiveContent(const LiveFacts& facts, const LiveOptions& options);

std::string LivePage(const LiveContent& content);

// What a page says with its request for events.
struct LiveRequest {
  bool all_open = false;
  std::set<std::string, std::less<>> open;  // ids of the groups that its reader sees
  std::string outline;                      // of its table
};
// "open=g-1,g-2&outline=17" or "open=all"; unknown parts are ignored.
LiveRequest ParseLiveRequest(std::string_view query);

// Ends with a tick. `before`: null at the begin of a stream.
std::string LiveEvents(const LiveContent* before, const LiveContent& now, const LiveRequest& request);
std::string MovedEvent(std::string_view sentence);
// With the title of a run that has ended. `content`: the newest; null: there is none.
std::string EndedEvent(std::string_view sentence, const LiveContent* content);

}  // namespace muster::agent
