// SPDX-License-Identifier: Apache-2.0
// Google Cloud Storage over its JSON API: lists and ranged media. The generation fixes the version; CRC-32C verifies.
//
// A gs:// URI means the same as an s3:// URI (aws/s3.h): an object, else a prefix. Media requests always have
// "Accept-Encoding: gzip": an object that is stored gzip-encoded comes in its stored form, whole and in ranges; size
// and hash are of that form. Names are percent-encoded, '/' as well. A 401 renews the token once.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "http/conversation.h"
#include "initializers/facts/provider.h"
#include "initializers/facts/source.h"
#include "initializers/google/tokens.h"

namespace muster::initializers {

struct GcsSettings {
  std::string endpoint = "https://storage.googleapis.com";  // without a trailing '/'
  std::string user_project;  // the project that pays (GOOGLE_CLOUD_QUOTA_PROJECT); empty: the bucket's
  std::string generation;    // of a single object; empty: the newest
};

// The endpoint: STORAGE_EMULATOR_HOST (which also means: anonymous), else gcloud's
// CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE, else the default. Both variables may leave out the scheme, and may end with
// /storage/v1. InvalidArgument: no http(s) URL; a password in it.
StatusOr<GcsSettings> FindGcsSettings(const Environment& environment);

std::unique_ptr<Provider> MakeGcs(boost::asio::io_context& loop, http::Persistence persistence, const Source& source,
                                  GcsSettings settings, std::unique_ptr<BearerSource> tokens);

}  // namespace muster::initializers
