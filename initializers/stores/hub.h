// SPDX-License-Identifier: Apache-2.0
// The Hugging Face hub: models, datasets, spaces at a commit. Each file is verified, by LFS's SHA-256 or git's blob id.
//
//   revision -> commit (one request; none if the revision is a commit)
//   tree at the commit, page by page -> files with sizes and hashes, without a HEAD request for any file. A path is
//     requested as a folder first; if it is not a folder, the file is looked for in the listing of its parent folder
//   resolve -> bytes, or a redirect: to another path of the hub (a renamed repository, the resolve cache), with our
//     token; or to a CDN (a signed URL), never with our token. A CDN URL is kept for all ranges of its file; a new one
//     is requested when the CDN refuses it (403: it has expired)
//
// Requests for bytes always have Range and "Accept-Encoding: identity": without them the CDN refuses files beyond 50 GB
// or may send the whole file. Xet-backed files come over the same redirect (the LFS bridge).
// A URI with a path brings that file or folder. Files land below the target by their whole path in the repository, as
// with snapshot_download(local_dir) and allow_patterns. There are no default patterns. With `cache_layout` an entry's
// key is its path in the repository; the entry without a key is refs/REVISION.
//
// After an answer with r=0 (RateLimit) the next requests of that kind wait t + 1 s, so that none gets a 429. Once
// redirected, requests use a renamed repository's new name. For users: docs/initializers.md, "Hugging Face".
#pragma once

#include <memory>

#include "http/conversation.h"
#include "initializers/facts/provider.h"
#include "initializers/facts/source.h"
#include "initializers/stores/hub_settings.h"

namespace muster::initializers {

std::unique_ptr<Provider> MakeHub(boost::asio::io_context& loop, http::Persistence persistence, const Source& source,
                                  HubSettings settings);

// "models--org--name": the folder of a repository in a hub cache (HF_HUB_CACHE).
std::string HubCacheFolder(const Source& source);

}  // namespace muster::initializers
