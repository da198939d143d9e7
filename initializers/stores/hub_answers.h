// SPDX-License-Identifier: Apache-2.0
// Parses the answers of the Hugging Face hub: revisions, trees, the Link header to the next page, errors. Pure; outside
// bytes: any field may be wrong. The code that reads from the network bounds the sizes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "http/client.h"
#include "initializers/facts/provider.h"

namespace muster::initializers {

// GET /api/{models|datasets|spaces}/ID/revision/REV -> the commit: 40 hex digits. InvalidArgument: anything else.
StatusOr<std::string> ParseRevision(std::string_view json);
bool IsCommit(std::string_view revision);  // 40 hex digits: such a revision needs no request to resolve it

// A page of GET .../tree/COMMIT?recursive=true -> its files, in order. Folders are left out (git has no empty ones).
// Each file has an expectation: lfs.oid (sha256), else oid (git's blob id, sha1); `version` is that id; `key` and
// `path` are the path in the repository. InvalidArgument names the fault and its place: no JSON, no array, an entry
// without path, size or id, a size beyond 2^63, an id of another length, an lfs.size that differs from size.
StatusOr<std::vector<Entry>> ParseTree(std::string_view json);

// GET .../revision/COMMIT?blobs=true -> the files among its `siblings`, in the form of ParseTree: rfilename, size, and
// lfs.sha256 or blobId. InvalidArgument also if a mirror leaves out sizes or ids.
StatusOr<std::vector<Entry>> ParseSiblings(std::string_view json);

// The URL of `<URL>; rel="next"` among other links, unchanged; nullopt: this is the last page.
std::optional<std::string> NextLink(std::string_view link);

// The meaning of an error answer, with the remedy: from X-Error-Code (RepoNotFound, RevisionNotFound, EntryNotFound,
// GatedRepo, DisabledRepo), X-Error-Message, RateLimit, Retry-After, and 401/403/404 with and without a token. `what`:
// the repository or file, for messages. 429 waits as long as RateLimit (t + 1 s) or Retry-After says. 405 and 501 name
// the API that a mirror lacks. 408 and the other 5xx are transient.
http::Refusal RefusalOfHub(const http::ResponseHead& head, std::string_view body, std::string_view what,
                           bool with_token, int64_t unix_now);

}  // namespace muster::initializers
