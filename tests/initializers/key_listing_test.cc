// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/key_listing.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <map>

#include "base/text.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

Entry Of(std::string key, uint64_t size = 1) {
  Entry entry;
  entry.key = std::move(key);
  entry.size = size;
  return entry;
}

// `found`: "denied", "broken", a key that exists, or empty. `pages`: "prefix|token" -> "key key > token".
struct Case {
  const char* what;
  const char* uri;
  const char* found;
  std::map<std::string, std::string> pages;
  const char* paths;  // as listed, with " / " between pages
  absl::StatusCode code = absl::StatusCode::kOk;
};

class KeyListing : public testing::TestWithParam<Case> {};

TEST_P(KeyListing, ListsOneObjectOrAFolderOfThem) {
  const Case& it = GetParam();
  auto source = ParseSource(it.uri, Role::kDataset);
  ASSERT_TRUE(source.ok()) << source.status();
  bool looked = false;
  KeyStore store;
  store.find = [&]() -> asio::awaitable<StatusOr<KeyStore::Found>> {
    looked = true;
    KeyStore::Found found;
    if (std::string_view(it.found) == "broken") co_return absl::UnavailableError("broken");
    if (std::string_view(it.found) == "denied") {
      found.denied = absl::PermissionDeniedError("denied");
    } else if (*it.found) {
      found.entry = Of(it.found);
    }
    co_return found;
  };
  store.page = [&](std::string prefix, std::string token) -> asio::awaitable<StatusOr<KeyPage>> {
    auto text = it.pages.find(prefix + "|" + token);
    if (text == it.pages.end()) co_return absl::InternalError(prefix + "|" + token);
    KeyPage page;
    auto words = Split(text->second, ' ');
    for (size_t i = 0; i < words.size() && !words[i].empty(); ++i) {
      if (words[i] == ">") {
        page.next = words[i + 1];
        break;
      }
      page.entries.push_back(Of(std::string(words[i]), words[i].ends_with('/') ? 0 : 1));
    }
    co_return page;
  };
  std::vector<std::string> pages;
  Catalogue::Listing listing;
  listing.page = [&](std::vector<Entry> entries) {
    std::vector<std::string> paths;
    for (const Entry& entry : entries) paths.push_back(entry.path);
    pages.push_back(Join(paths, " "));
  };
  asio::io_context loop;
  Status status = absl::UnknownError("it has not ended");
  auto list = [&]() -> asio::awaitable<void> { status = co_await ListKeys(*source, store, listing); };
  asio::co_spawn(loop, list(), asio::detached);
  loop.run();
  EXPECT_EQ(status.code(), it.code) << status;
  EXPECT_EQ(Join(pages, " / "), it.paths);
  EXPECT_EQ(looked, !source->folder);
}

INSTANTIATE_TEST_SUITE_P(
    Table, KeyListing,
    testing::Values(
        Case{"TheObject", "s3://b/a/x", "a/x", {}, "x"}, Case{"AnObjectAtTheTop", "s3://b/x", "x", {}, "x"},
        Case{"NoObjectButAFolder", "s3://b/a", "", {{"a/|", "a/1 a/2"}}, "1 2"},
        Case{"AFolder", "s3://b/a/", "", {{"a/|", "a/ a/1 a/b/ a/b/2"}}, "1 b/ b/2"},
        Case{"AMarkerAlone", "s3://b/a/", "", {{"a/|", "a/"}}, "", absl::StatusCode::kNotFound},
        Case{"TheBucket", "s3://b", "", {{"|", "1 a/2"}}, "1 a/2"},
        Case{"Pages", "s3://b/a/", "", {{"a/|", "a/1 > p"}, {"a/|p", "a/2 > q"}, {"a/|q", "a/3"}}, "1 / 2 / 3"},
        Case{"AnEmptyPageAmongThem", "s3://b/a/", "", {{"a/|", "> p"}, {"a/|p", "a/2"}}, "2"},
        Case{"Nothing", "s3://b/a", "", {{"a/|", ""}}, "", absl::StatusCode::kNotFound},
        Case{"AnEmptyBucket", "s3://b", "", {{"|", ""}}, "", absl::StatusCode::kNotFound},
        Case{"DeniedAndNothingElse", "s3://b/a", "denied", {{"a/|", ""}}, "", absl::StatusCode::kPermissionDenied},
        Case{"DeniedButAFolder", "s3://b/a", "denied", {{"a/|", "a/1"}}, "1"},
        Case{"Broken", "s3://b/a", "broken", {}, "", absl::StatusCode::kUnavailable},
        Case{"NotAskedFor", "s3://b/a", "", {{"a/|", "a/1 ab/2"}}, "", absl::StatusCode::kDataLoss},
        Case{"TheSamePageAgain",
             "s3://b/a/",
             "",
             {{"a/|", "a/1 > p"}, {"a/|p", "a/2 > p"}},
             "1 / 2",
             absl::StatusCode::kDataLoss}),
    [](const auto& info) { return info.param.what; });

}  // namespace
}  // namespace muster::initializers
