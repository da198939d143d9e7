// SPDX-License-Identifier: Apache-2.0
#include "initializers/aws/s3_answers.h"

#include <algorithm>
#include <cctype>

#include "base/iso_time.h"
#include "base/quoted.h"
#include "base/text.h"
#include "http/percent.h"
#include "initializers/stores/answer_checks.h"
#include "initializers/stores/xml_elements.h"
#include "initializers/stores/xml_error.h"

namespace muster::initializers {
namespace {

constexpr std::string_view kContents = "ListBucketResult/Contents";

Status BadPage(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

std::string WithQuotes(std::string_view etag) {
  etag = Strip(etag);
  if (etag.empty() || etag.starts_with('"') || etag.starts_with("W/")) return std::string(etag);
  return '"' + std::string(etag) + '"';
}

// Builds a page from the elements that end; ignores unknown elements.
class PageReader {
 public:
  Status Ended(std::string_view path, std::string_view text) {
    if (auto name = Below(path, kContents)) return InObject(*name, text);
    if (path == kContents) return EndObject();
    if (path == "ListBucketResult/NextContinuationToken") {
      page_.next = text;
    } else if (path == "ListBucketResult/IsTruncated") {
      const std::string truncated = Lower(Strip(text));
      if (truncated != "true" && truncated != "false") {
        return BadPage(fmt::format("IsTruncated is {}, neither true nor false", Quoted(text)));
      }
      truncated_ = truncated == "true";
    } else if (path == "ListBucketResult/EncodingType") {
      encoded_ = Lower(Strip(text)) == "url";
    } else if (path.find('/') == std::string_view::npos) {
      root_ = path;
    }
    return absl::OkStatus();
  }

  const std::string& root() const { return root_; }

  StatusOr<S3Page> Finish() && {
    if (root_ != "ListBucketResult") {
      return BadPage(fmt::format("it is a {}, not a ListBucketResult; check the endpoint", root_));
    }
    if (!truncated_) page_.next.reset();
    if (truncated_ && page_.next.value_or("").empty()) {
      return BadPage("it says that there is more (IsTruncated) without saying where (NextContinuationToken)");
    }
    if (encoded_) {  // EncodingType may come after the keys
      for (S3Object& object : page_.objects) object.key = http::PercentDecode(object.key, true);
    }
    return std::move(page_);
  }

 private:
  Status InObject(std::string_view name, std::string_view text) {
    if (name == "Key") {
      object_.key = text;
    } else if (name == "Size") {
      auto size = ParseInt(Strip(text));
      if (!size || *size < 0) {
        return BadPage(fmt::format("the size of {} is {}", Quoted(object_.key), Quoted(text)));
      }
      object_.size = static_cast<uint64_t>(*size);
      sized_ = true;
    } else if (name == "ETag") {
      object_.etag = WithQuotes(text);
    } else if (name == "StorageClass") {
      object_.storage_class = Strip(text);
    }
    return absl::OkStatus();
  }

  Status EndObject() {
    if (object_.key.empty()) return BadPage("an object has no Key");
    if (!sized_) return BadPage(fmt::format("{} has no Size", Quoted(object_.key)));
    page_.objects.push_back(std::move(object_));
    object_ = {};
    sized_ = false;
    return absl::OkStatus();
  }

  S3Page page_;
  S3Object object_;
  bool sized_ = false;
  bool truncated_ = false;
  bool encoded_ = false;
  std::string root_;
};

// True for an MD5 as stores write it: of the content, or of the parts' hashes ("HEX-N").
bool LooksLikeMd5(std::string_view etag) {
  constexpr size_t kDigits = 32;
  if (etag.size() < kDigits + 2 || etag.front() != '"' || etag.back() != '"') return false;
  const std::string_view hex = etag.substr(1, kDigits), rest = etag.substr(kDigits + 1);
  return std::all_of(hex.begin(), hex.end(), [](unsigned char c) { return std::isxdigit(c) != 0; }) &&
         (rest == "\"" || rest.front() == '-');
}

}  // namespace

StatusOr<S3Page> ParseS3Page(std::string_view xml) {
  PageReader reader;
  Status read =
      ReadXml(xml, [&reader](std::string_view path, std::string_view text) { return reader.Ended(path, text); });
  if (!read.ok()) return Annotate(read, "the list of objects cannot be read");
  if (reader.root() == "Error") {
    const XmlError error = ParseXmlError(xml);
    return BadPage(fmt::format("instead of a list of objects came the error {}: {}", error.code, error.message));
  }
  StatusOr<S3Page> page = std::move(reader).Finish();
  if (!page.ok()) return Annotate(page.status(), "the list of objects cannot be read");
  return page;
}

std::optional<std::string> PageInPlace(const http::ResponseHead& head, std::string_view key) {
  const auto etag = head.Find("etag");
  if (!etag) return "it has no ETag";
  // Any object may have the type text/html, but a store always sends headers of its own. A site that answers every path
  // with one page also does so for a prefix, which has no extension.
  const bool of_store = std::any_of(head.headers.begin(), head.headers.end(), [](const auto& header) {
    return header.first.starts_with("x-amz-") || header.first.starts_with("x-goog-");
  });
  if (!of_store && IsPageInstead(head, key, !LooksLikeMd5(*etag))) return "it is a web page";
  return std::nullopt;
}

StatusOr<StsCredentials> ParseStsAnswer(std::string_view xml) {
  StsCredentials credentials;
  std::string expires;
  auto ended = [&](std::string_view path, std::string_view text) {
    constexpr std::string_view kParent = "Credentials/";
    const size_t at = path.rfind('/');
    if (at == std::string_view::npos || !path.substr(0, at + 1).ends_with(kParent)) return absl::OkStatus();
    const std::string_view name = path.substr(at + 1);
    if (name == "AccessKeyId") credentials.access_key = Strip(text);
    if (name == "SecretAccessKey") credentials.secret_key = Strip(text);
    if (name == "SessionToken") credentials.session_token = Strip(text);
    if (name == "Expiration") expires = Strip(text);
    return absl::OkStatus();
  };
  if (Status read = ReadXml(xml, ended); !read.ok()) return Annotate(read, "the answer of STS cannot be read");
  if (XmlError error = ParseXmlError(xml); !error.code.empty()) {
    return absl::InvalidArgumentError(fmt::format("STS answers {}: {}", error.code, error.message));
  }
  const std::pair<std::string_view, std::string_view> parts[] = {{"AccessKeyId", credentials.access_key},
                                                                 {"SecretAccessKey", credentials.secret_key},
                                                                 {"SessionToken", credentials.session_token}};
  for (const auto& [name, value] : parts) {
    if (value.empty()) return absl::InvalidArgumentError(fmt::format("the answer of STS has no {}", name));
    if (!IsVisible(value)) {  // the value goes into a header
      return absl::InvalidArgumentError(
          fmt::format("the {} that STS gave has a blank or a character that is not printable ASCII", name));
    }
  }
  auto time = ParseIsoTime(expires);
  if (!time.ok()) return Annotate(time.status(), "the Expiration that STS gave");
  credentials.expires_unix = *time;
  return credentials;
}

}  // namespace muster::initializers
