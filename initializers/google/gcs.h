// Google Cloud Storage by its JSON API: lists, ranged media, pinned by generation, verified by CRC-32C.
//
// A gs:// URI is read as s3.h reads an s3:// one: with a '/' at its end, or no object, it is a prefix; else the exact
// object is looked for first, then "object/" as a prefix. Always Accept-Encoding: gzip on media, so that an object that
// is stored gzip-encoded comes as it is stored (its size and hash are of that), whole and in ranges. Object names are
// percent-encoded, '/' as well. A 401 has the token renewed once.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "http/conversation.h"
#include "initializers/google/tokens.h"
#include "initializers/provider.h"
#include "initializers/source.h"

namespace muster::initializers {

struct GcsSettings {
  std::string endpoint = "https://storage.googleapis.com";  // without a '/' at its end
  std::string user_project;                                 // who pays (GOOGLE_CLOUD_QUOTA_PROJECT); empty: the bucket
  std::string generation;                                   // of a single object; empty: the newest
};

// STORAGE_EMULATOR_HOST (which also means: anonymous), else gcloud's CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE, each with
// or without a scheme and with or without /storage/v1 at its end; else the default. InvalidArgument: no http(s) URL; a
// password in it.
StatusOr<GcsSettings> FindGcsSettings(const Environment& environment);

std::unique_ptr<Provider> MakeGcs(boost::asio::io_context& loop, http::Persistence persistence, const Source& source,
                                  GcsSettings settings, std::unique_ptr<BearerSource> tokens);

}  // namespace muster::initializers
