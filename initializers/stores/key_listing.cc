// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/key_listing.h"

#include <utility>

#include "base/quoted.h"
#include "base/text.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

// The entries below `prefix`, with their paths. DataLoss: an entry is not below it.
StatusOr<std::vector<Entry>> Below(const std::string& prefix, const std::string& where, std::vector<Entry> entries) {
  std::vector<Entry> below;
  below.reserve(entries.size());
  for (Entry& entry : entries) {
    if (!entry.key.starts_with(prefix)) {
      return absl::DataLossError(fmt::format("listing {}: the server gave {}, which is outside the requested prefix",
                                             where, Quoted(entry.key)));
    }
    entry.path = entry.key.substr(prefix.size());
    if (entry.path.empty() && entry.size == 0) continue;  // the marker of the folder itself
    below.push_back(std::move(entry));
  }
  return below;
}

asio::awaitable<Status> ListPages(const std::string& prefix, const std::string& where, const KeyStore& store,
                                  const Catalogue::Listing& listing, bool* found) {
  std::string token;
  do {
    auto page = co_await store.page(prefix, token);
    if (!page.ok()) co_return page.status();
    auto entries = Below(prefix, where, std::move(page->entries));
    if (!entries.ok()) co_return entries.status();
    *found = *found || !entries->empty();
    if (!entries->empty()) listing.page(*std::move(entries));
    if (!page->next.empty() && page->next == token) {
      co_return absl::DataLossError(fmt::format("listing {}: the server gives the same page again", where));
    }
    token = std::move(page->next);
  } while (!token.empty());
  co_return absl::OkStatus();
}

}  // namespace

asio::awaitable<Status> ListKeys(const Source& source, const KeyStore& store, const Catalogue::Listing& listing) {
  Status denied;
  if (!source.folder) {
    auto exact = co_await store.find();
    if (!exact.ok()) co_return exact.status();
    if (exact->entry) {
      std::vector<Entry> entries;
      entries.push_back(*std::move(exact->entry));
      entries.front().path = source.path.substr(source.path.rfind('/') + 1);
      listing.page(std::move(entries));
      co_return absl::OkStatus();
    }
    denied = std::move(exact->denied);
  }
  const std::string prefix = source.folder ? source.path : source.path + "/";
  const std::string where = source.folder ? source.uri : source.uri + "/";
  bool found = false;
  Status status = co_await ListPages(prefix, where, store, listing, &found);
  if (!status.ok() || found) co_return status;
  if (!denied.ok()) co_return denied;
  co_return absl::NotFoundError(
      source.folder ? fmt::format("{}: there is nothing below it", source.uri)
                    : fmt::format("{}: there is no such object, and nothing below {}", source.uri, where));
}

}  // namespace muster::initializers
