// From a source's URI and everything that is configured to what can be listed and asked: which provider, which
// endpoint, whose credentials; or which folder of this machine.
//
// The one place that knows every kind of source. Loop thread only; nothing is asked before List().
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "http/conversation.h"
#include "initializers/disk_pool.h"
#include "initializers/local_folder.h"
#include "initializers/provider.h"
#include "initializers/settings.h"
#include "initializers/source.h"

namespace muster::initializers {

struct SourceSettings {
  bool anonymous = false;           // send no credentials, whatever is configured
  bool allow_html = false;          // a web page may be what https:// is to bring (web_file.h)
  std::string version_id;           // of a single S3 object or GCS object (its generation)
  std::vector<std::string> claims;  // "NAME=DIR" (local_folder.h)
  Patterns patterns;                // a folder's walk does not look into what they leave out
  bool hub_cache = false;           // of an hf:// source: laid as the hub's client keeps it (hub_settings.h)
  http::Options http;
  http::Limits limits;  // of bytes; a small answer has kSmallAnswer as well
  http::RetryRules retry;
};

inline constexpr Duration kSmallAnswer = std::chrono::seconds(60);  // a list's page, a look, a token: start to end

struct OpenedSource {
  std::unique_ptr<http::Client> http;           // the provider asks through it; null for a folder
  std::unique_ptr<http::Client> identity_http;  // for credentials, where they are asked for by other rules; else null
  std::unique_ptr<Catalogue> catalogue;
  Provider* provider = nullptr;  // the catalogue, where it is one over HTTP
};

// InvalidArgument, FailedPrecondition: a setting that cannot be used, naming the variable and the remedy.
StatusOr<OpenedSource> OpenSource(boost::asio::io_context& loop, DiskPool& pool, const Source& source,
                                  SourceSettings settings, const Environment& environment,
                                  std::function<double()> jitter, std::function<void(const std::string&)> say);

}  // namespace muster::initializers
