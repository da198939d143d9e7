// SPDX-License-Identifier: Apache-2.0
// The endpoint of the Hugging Face hub, our token, and the revision: from the environment and the token file, by the
// rules of huggingface_hub, plus the variable names of Kubeflow. Pure, except for the functions passed in.
//
// Endpoint: HF_ENDPOINT (default https://huggingface.co; may have a path; a trailing '/' is dropped).
// Token, the first that is not empty: ACCESS_TOKEN (Kubeflow), HF_TOKEN, HUGGING_FACE_HUB_TOKEN, HUGGING_FACE_TOKEN;
// the file HF_TOKEN_PATH, else $HF_HOME/token, else $XDG_CACHE_HOME/huggingface/token, else ~/.cache/huggingface/token
// (a missing file: no token; HF_HUB_DISABLE_IMPLICIT_TOKEN disables the file). White space around a token is dropped.
// Revision: the URI's, else MODEL_VERSION, else "main".
// Cache: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE; else $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub,
// ~/.cache/huggingface/hub.
// For users: docs/initializers.md, "Hugging Face".
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "initializers/facts/settings.h"
#include "initializers/facts/source.h"

namespace muster::initializers {

struct HubSettings {
  std::string endpoint;                            // "https://huggingface.co", without a trailing '/'
  std::string revision;                            // branch, tag or commit; never empty
  std::optional<std::string> token, token_origin;  // origin: "HF_TOKEN", for messages; never the token
  bool cache_layout = false;  // files are stored as in a hub cache: snapshots/COMMIT/PATH, refs/REVISION
};

// InvalidArgument: an endpoint that is not an http(s) URL or has a password in it; a token that cannot stand in a
// header (names the variable, never shows the token); HF_HUB_OFFLINE (explains that it forbids every download).
StatusOr<HubSettings> FindHubSettings(const Source& source, bool anonymous, const Environment& environment,
                                      const ReadText& read, const std::string& home);

// The wanted revision of `source`; never empty.
std::string FindHubRevision(const Source& source, const Environment& environment);

// The cache folder of huggingface_hub. FailedPrecondition: no variable names it, not even HOME.
StatusOr<std::string> FindHubCache(const Environment& environment, const std::string& home);

}  // namespace muster::initializers
