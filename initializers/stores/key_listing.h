// SPDX-License-Identifier: Apache-2.0
// Lists the objects of a URI in a store of keys without folders (S3, GCS), page by page.
//
// gs://b/a/ means everything below a/. s3://b/a/b means the object with exactly that key, else everything below a/b/:
// never a/bc. An entry lands at its path below the prefix. The marker object of the folder itself (the prefix as a key,
// no bytes) is not an entry. Loop thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "initializers/facts/provider.h"
#include "initializers/facts/source.h"

namespace muster::initializers {

struct KeyPage {
  std::vector<Entry> entries;  // ListKeys fills in their paths
  std::string next;            // token; empty: it is the last page
};

struct KeyStore {
  struct Found {
    std::optional<Entry> entry;  // nullopt: there is no such object, or access is denied
    Status denied;               // the error if access is denied; reported if nothing else is found
  };
  // Finds the object whose key is the URI's path. An error status is final.
  std::function<boost::asio::awaitable<StatusOr<Found>>()> find;
  // The page that `token` (empty: the first) stands for of the keys that begin with `prefix`. An error status is final.
  std::function<boost::asio::awaitable<StatusOr<KeyPage>>(std::string prefix, std::string token)> page;
};

// Passes pages to `listing.page`; the caller passes the returned status to `listing.end`. NotFound: there is nothing.
// DataLoss: the server lists keys that were not requested, or the same page again.
boost::asio::awaitable<Status> ListKeys(const Source& source, const KeyStore& store, const Catalogue::Listing& listing);

}  // namespace muster::initializers
