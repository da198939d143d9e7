// What a URI means in a store of keys without folders (S3, GCS), and the walk through its pages.
//
// gs://b/a/ is everything below a/. s3://b/a/b is the object of exactly that key, else everything below a/b/: never
// a/bc. A path below the prefix is where an entry lands; the folder's own marker (the prefix as a key, no bytes) is
// none. Loop thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "initializers/provider.h"
#include "initializers/source.h"

namespace muster::initializers {

struct KeyPage {
  std::vector<Entry> entries;  // their paths are filled here
  std::string next;            // token; empty: it is the last page
};

struct KeyStore {
  struct Found {
    std::optional<Entry> entry;  // nothing: it is not there, or may not be seen
    Status denied;               // may not be seen: why, if it turns out that nothing else is there
  };
  // The object whose key is the URI's path. A Status is final.
  std::function<boost::asio::awaitable<StatusOr<Found>>()> find;
  // The page of the keys that begin with `prefix` that `token` (empty: none) stands for. A Status is final.
  std::function<boost::asio::awaitable<StatusOr<KeyPage>>(std::string prefix, std::string token)> page;
};

// Gives `listing` pages; the status is for its end. NotFound: there is nothing. DataLoss: the server lists what was not
// asked for, or the same page again.
boost::asio::awaitable<Status> ListKeys(const Source& source, const KeyStore& store, const Catalogue::Listing& listing);

}  // namespace muster::initializers
