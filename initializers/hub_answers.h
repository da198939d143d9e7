// What the Hugging Face hub answers, read: revisions, trees, the Link to the next page, errors. Pure; outside bytes:
// sizes are bounded by who reads them from the network, any field may be wrong.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "http/client.h"
#include "initializers/provider.h"

namespace muster::initializers {

// GET /api/{models|datasets|spaces}/ID/revision/REV -> the commit: 40 hex digits. InvalidArgument: anything else.
StatusOr<std::string> ParseRevision(std::string_view json);
bool IsCommit(std::string_view revision);  // 40 hex digits: nothing has to be resolved

// A page of GET .../tree/COMMIT?recursive=true -> its files, in order; folders are left out (git has no empty ones).
// Each has its expectation: lfs.oid (sha256), else oid (git's blob id, sha1); `version` is that id; `key` and `path`
// are the path in the repository. InvalidArgument names what is wrong and where: no JSON, no array, an entry without
// path, size or id, a size beyond 2^63, an id of another length, lfs.size that is not size.
StatusOr<std::vector<Entry>> ParseTree(std::string_view json);

// GET .../revision/COMMIT?blobs=true -> the files among its `siblings`, as ParseTree gives them: rfilename, size, and
// lfs.sha256 or blobId. InvalidArgument also where a mirror leaves sizes or ids out.
StatusOr<std::vector<Entry>> ParseSiblings(std::string_view json);

// `<URL>; rel="next"` among others -> URL as it stands; nothing: it is the last page.
std::optional<std::string> NextLink(std::string_view link);

// What an answer that is no success means, with the remedy: X-Error-Code (RepoNotFound, RevisionNotFound,
// EntryNotFound, GatedRepo, DisabledRepo), X-Error-Message, RateLimit, Retry-After, 401/403/404 with and without a
// token. `what`: the repository or file, for people. 429 waits for what RateLimit (t + 1 s) or Retry-After says; 405
// and 501 name the API that a mirror lacks; 408 and the other 5xx are transient.
http::Refusal RefusalOfHub(const http::ResponseHead& head, std::string_view body, std::string_view what,
                           bool with_token, int64_t unix_now);

}  // namespace muster::initializers
