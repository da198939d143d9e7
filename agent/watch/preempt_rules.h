// SPDX-License-Identifier: Apache-2.0
// What a cloud's metadata service says about the end of this machine: the rules of --preempt-file=http://... Pure.
//
//   AWS    /latest/meta-data/spot/instance-action is 404 until there is a notice, then {"action": "terminate", "time":
//          ...}. .../spot/termination-time is the same with the time alone. 401 asks for a session token (IMDSv2).
//          docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html,
//          configuring-instance-metadata-service.html
//   GCE    /computeMetadata/v1/instance/preempted is FALSE, then TRUE; /instance/maintenance-event is NONE,
//          MIGRATE_ON_HOST_MAINTENANCE (the machine goes on) or TERMINATE_ON_HOST_MAINTENANCE. Needs the header
//          Metadata-Flavor: Google. ?wait_for_change=true answers only at the next change; &last_etag= makes sure that
//          no change is missed. cloud.google.com/compute/docs/instances/create-use-preemptible,
//          /compute/docs/metadata/querying-metadata
//   Azure  /metadata/scheduledevents?api-version=2020-07-01 is {"Events": [...]}. EventType Preempt (a spot machine)
//          and Terminate (a deletion) count if Resources has this machine, since the service lists the events of the
//          whole scale set. Needs the header Metadata: true.
//          learn.microsoft.com/azure/virtual-machines/linux/scheduled-events
//
// A user's own service answers as GCE's does: 404, an empty text or FALSE, then TRUE. Any other text is not a notice: a
// proxy's error page must not end a job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::agent {

// http://HOST[:PORT]/PATH[?QUERY].
struct HttpUrl {
  std::string host;  // without brackets
  int port = 80;
  std::string target;  // path and query, "/" at least
};
// InvalidArgument: another scheme, user names, a fragment, blanks or control characters.
StatusOr<HttpUrl> ParseHttpUrl(std::string_view url);

struct NoticeVerdict {
  enum class Kind {
    kNothing,   // this machine stays
    kNotice,    // this machine will end
    kNoticeOf,  // one of `machines` will end
    kToken,     // the service wants a token
    kTrouble,   // the answer does not say
  };
  Kind kind = Kind::kNothing;
  std::string what;  // of a notice: "terminate at 2026-01-01T00:00:00Z"; of trouble: one sentence
  std::vector<std::string> machines;
};

// Judges the answer with this HTTP status and body.
NoticeVerdict JudgeNotice(int status, std::string_view body);

// For a long poll (wait_for_change=true in the query): the first request must not wait, and the later ones name the
// state that is known. `etag`: of the last answer; left out if it has odd characters.
bool IsLongPoll(std::string_view target);
std::string FirstTarget(std::string_view target);
std::string NextTarget(std::string_view target, std::string_view etag);

}  // namespace muster::agent
