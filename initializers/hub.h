// The Hugging Face hub: models, datasets and spaces at a commit; every file verified, by LFS's SHA-256 or git's blob
// id.
//
//   revision -> commit (one request; none for a commit)
//   tree at the commit, page by page -> files with sizes and hashes: no HEAD for any of them. A path is asked for as a
//     folder; what is none is looked for in the folder that it is in
//   resolve -> bytes, or a redirect: to another path of the hub (a renamed repository, the resolve cache: with our
//   token) or to a CDN (a signed URL: never with our token). A CDN's URL is kept for all ranges of its file, and asked
//   for anew when it is refused (403: it has expired).
// Always Range and Accept-Encoding: identity: the CDN refuses more than 50 GB without, and may answer with all of it
// else. Xet-backed files come over the same redirect (the LFS bridge). A URI with a path takes the file, or what lies
// below the folder; files land below the target by their path in the repository, whole (as snapshot_download(local_dir)
// with allow_patterns has them). A model's or data set's patterns are the user's; nothing is left out by default. Rate
// limits are waited for before they are hit: an answer with r=0 pauses the next requests of its kind for t + 1 s. A
// renamed repository is asked for by its new name from the first redirect on. With `cache_layout` an entry's key is its
// path in the repository, and the one without a key is refs/REVISION.
// For users: docs/initializers.md, "Hugging Face".
#pragma once

#include <memory>

#include "http/conversation.h"
#include "initializers/hub_settings.h"
#include "initializers/provider.h"
#include "initializers/source.h"

namespace muster::initializers {

std::unique_ptr<Provider> MakeHub(boost::asio::io_context& loop, http::Persistence persistence, const Source& source,
                                  HubSettings settings);

// "models--org--name": the folder of a repository in a hub cache (HF_HUB_CACHE).
std::string HubCacheFolder(const Source& source);

}  // namespace muster::initializers
