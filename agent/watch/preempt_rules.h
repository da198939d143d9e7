// What a cloud's metadata service says about the end of this machine: the rules of --preempt-file=http://... Pure.
//
//   AWS    /latest/meta-data/spot/instance-action is 404 until there is a notice, then {"action": "terminate", "time":
//          ...}; .../spot/termination-time the same with the time alone. 401 wants a session token (IMDSv2).
//          docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html,
//          configuring-instance-metadata-service.html
//   GCE    /computeMetadata/v1/instance/preempted is FALSE, then TRUE; /instance/maintenance-event is NONE,
//          MIGRATE_ON_HOST_MAINTENANCE (the machine goes on) or TERMINATE_ON_HOST_MAINTENANCE. Wants the header
//          Metadata-Flavor: Google; ?wait_for_change=true answers at the next change only, &last_etag= makes that safe.
//          cloud.google.com/compute/docs/instances/create-use-preemptible, /compute/docs/metadata/querying-metadata
//   Azure  /metadata/scheduledevents?api-version=2020-07-01 is {"Events": [...]}; EventType Preempt (a spot machine)
//   and
//          Terminate (a deletion) count, where Resources has this machine: events of the whole scale set are told.
//          Wants the header Metadata: true. learn.microsoft.com/azure/virtual-machines/linux/scheduled-events
//
// A service of one's own answers 404, an empty text or FALSE, then TRUE, as GCE's. Any other text is no notice: a
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
    kNotice,    // it goes
    kNoticeOf,  // one of `machines` goes
    kToken,     // ask again with a token
    kTrouble,   // it cannot be told
  };
  Kind kind = Kind::kNothing;
  std::string what;  // of a notice: "terminate at 2026-01-01T00:00:00Z"; of trouble: one sentence
  std::vector<std::string> machines;
};

// `status` and `body` of the answer.
NoticeVerdict JudgeNotice(int status, std::string_view body);

// For a long poll (wait_for_change=true in the query): the first question must not wait, the later ones name the state
// that is known. `etag`: of the last answer; one with odd characters is left out.
bool IsLongPoll(std::string_view target);
std::string FirstTarget(std::string_view target);
std::string NextTarget(std::string_view target, std::string_view etag);

}  // namespace muster::agent
