// SPDX-License-Identifier: Apache-2.0
// Parses a source URI. Pure.
//
//   s3://BUCKET[/KEY or PREFIX]      gs://BUCKET[/OBJECT or PREFIX]
//   hf://[models/|datasets/|spaces/]NAMESPACE/NAME[@REVISION][/PATH]     also NAMESPACE/NAME:REVISION (KServe's)
//   pvc://CLAIM[/PATH]     file:///PATH     http(s)://HOST[:PORT]/PATH[?QUERY][#sha256=HEX]
//
// Keys and paths of s3, gs, pvc and file are taken literally: no percent-decoding; '?' and '#' are ordinary characters
// (as in aws, gsutil and s5cmd). hf: "refs/pr/N" and "refs/convert/X" are revisions with slashes; in others a slash
// must be written %2F, and any character may be percent-encoded. http: path and query are sent unchanged. The fragment
// "#sha256=HEX" is the hash that the file must have; another one with a '=' is refused, any other is dropped.
//
// A user and password in a URI are refused: URIs appear in pod specs, logs, the manifest. For users:
// docs/initializers.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "initializers/facts/digest.h"

namespace muster::initializers {

enum class Role { kDataset, kModel };  // decides the type of an hf:// repository, and the target folder
enum class Scheme { kS3, kGcs, kHuggingFace, kPvc, kFile, kHttp };
enum class RepoType { kModel, kDataset, kSpace };

struct Source {
  Scheme scheme = Scheme::kS3;
  std::string uri;  // as given, but for secrets in an http query ("X-Amz-Signature=..."); for messages, the manifest
  std::string container;  // bucket; "namespace/name"; claim; "host[:port]"; empty for file
  std::string path;     // key or prefix; path in the repository or the claim (empty: all of it); of the machine and of
                        // http with the first '/', of http with the query
  bool folder = false;  // the path ends with '/' (kept in `path`) or is empty: always a prefix, never one object
  RepoType repo_type = RepoType::kModel;
  std::string revision;                 // hf; empty: the URI names none
  bool tls = true;                      // http: the scheme was https
  std::optional<Expectation> expected;  // http: of the fragment
  bool operator==(const Source&) const = default;
};

inline constexpr size_t kLongestUri = 8192;  // bytes

// InvalidArgument names the URI, without parts that may be secret, and the expected form.
StatusOr<Source> ParseSource(std::string_view uri, Role role);

}  // namespace muster::initializers
