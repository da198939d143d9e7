// Where the Hugging Face hub is and who we are there: environment and token file, as huggingface_hub finds them, with
// Kubeflow's name beside them. Pure but for the seams it is given.
//
// Endpoint: HF_ENDPOINT (default https://huggingface.co; may have a path; a '/' at its end is dropped).
// Token, the first that is not empty: ACCESS_TOKEN (Kubeflow), HF_TOKEN, HUGGING_FACE_HUB_TOKEN, HUGGING_FACE_TOKEN;
// the file HF_TOKEN_PATH, else $HF_HOME/token, else $XDG_CACHE_HOME/huggingface/token, else ~/.cache/huggingface/token
// (not there: none; HF_HUB_DISABLE_IMPLICIT_TOKEN leaves the file out). White space around a token is dropped.
// Revision: the URI's, else MODEL_VERSION, else "main".
// Cache: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE; else $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub,
// ~/.cache/huggingface/hub.
// For users: docs/initializers.md, "Hugging Face".
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "initializers/settings.h"
#include "initializers/source.h"

namespace muster::initializers {

struct HubSettings {
  std::string endpoint;                            // "https://huggingface.co", without a '/' at its end
  std::string revision;                            // branch, tag or commit; never empty
  std::optional<std::string> token, token_origin;  // origin for people: "HF_TOKEN"; never the token
  bool cache_layout = false;  // entries lie as in a hub cache: snapshots/COMMIT/PATH, refs/REVISION
};

// InvalidArgument: an endpoint that is no http(s) URL or has a password in it, a token that could not stand in a header
// (says which variable; never shows it), HF_HUB_OFFLINE (says that nothing can be brought in then).
StatusOr<HubSettings> FindHubSettings(const Source& source, bool anonymous, const Environment& environment,
                                      const ReadText& read, const std::string& home);

// The revision that is wanted of it; never empty.
std::string FindHubRevision(const Source& source, const Environment& environment);

// Where the hub's client looks for repositories. FailedPrecondition: nothing says where, not even HOME.
StatusOr<std::string> FindHubCache(const Environment& environment, const std::string& home);

}  // namespace muster::initializers
