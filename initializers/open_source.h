// SPDX-License-Identifier: Apache-2.0
// Turns a source's URI and all settings into a Catalogue: a provider with endpoint and credentials, or a local folder.
//
// This is the only file that knows every kind of source. Loop thread only; sends no request before List().
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "http/conversation.h"
#include "initializers/disk/disk_pool.h"
#include "initializers/facts/provider.h"
#include "initializers/facts/settings.h"
#include "initializers/facts/source.h"
#include "initializers/stores/local_folder.h"

namespace muster::initializers {

struct SourceSettings {
  bool anonymous = false;           // send no credentials, whatever is configured
  bool allow_html = false;          // https:// may bring a web page (web_file.h)
  std::string version_id;           // of a single S3 object, or the generation of a single GCS object
  std::vector<std::string> claims;  // "NAME=DIR" (local_folder.h)
  Patterns patterns;                // the walk of a folder skips what they exclude
  bool hub_cache = false;  // for an hf:// source: store the files as in the hub client's cache (hub_settings.h)
  http::Options http;
  http::Limits limits;  // for downloads; a small answer has kSmallAnswer as well
  http::RetryRules retry;
};

inline constexpr Duration kSmallAnswer = std::chrono::seconds(60);  // for all of a list's page, a Look or a token

struct OpenedSource {
  std::unique_ptr<http::Client> http;           // the provider's requests go through it; null for a folder
  std::unique_ptr<http::Client> identity_http;  // for requests of credentials that need other options; else null
  std::unique_ptr<Catalogue> catalogue;
  Provider* provider = nullptr;  // the catalogue if it is one over HTTP
};

// InvalidArgument, FailedPrecondition: a setting that cannot be used; the message names the variable and the remedy.
StatusOr<OpenedSource> OpenSource(boost::asio::io_context& loop, DiskPool& pool, const Source& source,
                                  SourceSettings settings, const Environment& environment,
                                  std::function<double()> jitter, std::function<void(const std::string&)> say);

}  // namespace muster::initializers
