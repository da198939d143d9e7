// SPDX-License-Identifier: Apache-2.0
// Source URIs: the meaning of each form, and the errors for invalid ones.
#include "initializers/facts/source.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string_view Name(Scheme scheme) {
  constexpr std::string_view kNames[] = {"s3", "gcs", "hf", "pvc", "file", "http"};
  return kNames[static_cast<size_t>(scheme)];
}

// "scheme container path"; for hf also type and @revision; "folder" if it is one. Or "error: ...".
std::string Read(std::string_view uri, Role role = Role::kModel) {
  auto source = ParseSource(uri, role);
  if (!source.ok()) {
    EXPECT_EQ(source.status().code(), absl::StatusCode::kInvalidArgument);
    return "error: " + std::string(Message(source.status()));
  }
  std::string text = fmt::format("{} [{}] [{}]", Name(source->scheme), source->container, source->path);
  if (source->scheme == Scheme::kHuggingFace) {
    constexpr std::string_view kTypes[] = {"model", "dataset", "space"};
    text += fmt::format(" {} @{}", kTypes[static_cast<size_t>(source->repo_type)], source->revision);
  }
  if (!source->tls) text += " plain";
  if (source->folder) text += " folder";
  return text;
}

struct Row {
  std::string_view uri, expected;
};

void ExpectAll(std::initializer_list<Row> rows) {
  for (const Row& row : rows) {
    EXPECT_EQ(Read(row.uri), row.expected) << row.uri;
    EXPECT_EQ(ParseSource(row.uri, Role::kModel)->uri, row.uri);
  }
}

void ExpectErrors(std::initializer_list<Row> rows) {
  for (const Row& row : rows) {
    EXPECT_THAT(Read(row.uri), ::testing::StartsWith("error: ")) << row.uri;
    EXPECT_THAT(Read(row.uri), HasSubstr(row.expected)) << row.uri;
  }
}

TEST(Source, BucketsAndKeysAreRead) {
  ExpectAll({
      {"s3://bucket", "s3 [bucket] [] folder"},
      {"s3://bucket/", "s3 [bucket] [] folder"},
      {"s3://bucket/key", "s3 [bucket] [key]"},
      {"s3://bucket/a/b/", "s3 [bucket] [a/b/] folder"},
      {"S3://My_old.Bucket/K", "s3 [My_old.Bucket] [K]"},
      {"gs://bucket-1/a b/c", "gcs [bucket-1] [a b/c]"},
      {"gs://example.com/x", "gcs [example.com] [x]"},
      // Keys are taken literally.
      {"s3://b/a%20b", "s3 [b] [a%20b]"},
      {"s3://b/a?b#c&d=e", "s3 [b] [a?b#c&d=e]"},
      {"s3://b//a", "s3 [b] [/a]"},
      {"s3://b/a//b/../c/./", "s3 [b] [a//b/../c/./] folder"},
      {"s3://b/user:password@host", "s3 [b] [user:password@host]"},
      {"s3://b/*.parquet", "s3 [b] [*.parquet]"},
      {"gs://b/日本語", "gcs [b] [日本語]"},
      {"s3://b/a ", "s3 [b] [a ]"},
      {"s3://b/s3://c", "s3 [b] [s3://c]"},
  });
}

TEST(Source, BucketsThatAreNone) {
  ExpectErrors({
      {"s3://", "the source 's3://': it names no bucket: after the two slashes comes BUCKET[/KEY]"},
      {"gs:///key", "it names no bucket"},
      {"s3:/bucket",
       "the source 's3:/bucket': after s3: come two slashes; known are s3://BUCKET/KEY, gs://BUCKET/OBJECT"},
      {"s3:bucket/key", "after s3: come two slashes"},
      {"s3://bu cket/k", "'bu cket' is not a bucket's name (letters, digits, '-', '.', '_')"},
      {"s3://bucket?x=1", "'bucket?x=1' is not a bucket's name"},
      {"s3://..", "'..' is not a bucket's name"},
      {"s3://./k", "'.' is not a bucket's name"},
      {"s3://a..b/k", "is not a bucket's name"},
      {"s3://-b/k", "is not a bucket's name"},
      {"s3://b\xc3\xbc/k", "'bü' is not a bucket's name"},
      {"s3://arn:aws:s3:eu-west-1:1:accesspoint/x", "is not a bucket's name"},
      {"s3://localhost:9000/b", "is not a bucket's name"},
  });
}

TEST(Source, AnUnknownSchemeIsNamed) {
  ExpectErrors({
      {"",
       "there is no source URI; give one of s3://BUCKET/KEY, gs://BUCKET/OBJECT, hf://NAMESPACE/NAME, "
       "pvc://CLAIM/PATH, "
       "file:///PATH, https://HOST/PATH"},
      {"/data/x", "the source '/data/x': for a path of this machine write file:///data/x"},
      {"openai-community/gpt2", "it has no scheme; known are s3://BUCKET/KEY"},
      {"file", "it has no scheme"},
      {"hdfs://host/x", "the scheme 'hdfs' is not known; known are s3://BUCKET/KEY"},
      {"cache://x",
       "Kubeflow's data cache is a service of its own, which Muster does not set up; name the data itself"},
      {"://x", "the scheme '' is not known"},
      {" s3://b", "the scheme ' s3' is not known"},
      {"s3a://b/k", "write s3:// for s3a://"},
      {"S3N://b/k", "write s3:// for s3n://"},
      {"gcs://b/k", "write gs:// for gcs://"},
      {"huggingface://a/b", "write hf:// for huggingface://"},
      {"s3://b/k\n", "'s3://b/k\\x0a': it contains a line end or another control character"},
      {std::string_view("s3://b/\0k", 9), "control character"},
      {"s3://b/\x7f", "control character"},
      {"s3://b/caf\xe9", "'s3://b/caf\\xe9': it is not UTF-8"},
  });
}

TEST(Source, IsBounded) {
  const std::string longest = "s3://b/" + std::string(kLongestUri - 7, 'k');
  EXPECT_EQ(ParseSource(longest, Role::kModel)->path.size(), kLongestUri - 7);
  EXPECT_THAT(Read(longest + "k"), HasSubstr("it has 8193 bytes, and a URI has at most 8192"));
  EXPECT_LT(Read(std::string(10'000'000, '/')).size(), 500U);
  EXPECT_LT(Read("s3://" + std::string(8'000, 'b')).size(), 1'000U);
}

TEST(Source, HubRepositories) {
  ExpectAll({
      {"hf://openai-community/gpt2", "hf [openai-community/gpt2] [] model @ folder"},
      {"hf://openai-community/gpt2/", "hf [openai-community/gpt2] [] model @ folder"},
      {"hf://models/a/b", "hf [a/b] [] model @ folder"},
      {"hf://datasets/rajpurkar/squad", "hf [rajpurkar/squad] [] dataset @ folder"},
      {"hf://spaces/a/b", "hf [a/b] [] space @ folder"},
      {"HF://a/b", "hf [a/b] [] model @ folder"},
      {"hf://a/b/config.json", "hf [a/b] [config.json] model @"},
      {"hf://a/b/data/train/", "hf [a/b] [data/train/] model @ folder"},
      {"hf://datasets/a/b/datasets/c/d", "hf [a/b] [datasets/c/d] dataset @"},
      {"hf://meta-llama/Llama-3.1_8B/x", "hf [meta-llama/Llama-3.1_8B] [x] model @"},
      {"hf://a/b@main", "hf [a/b] [] model @main folder"},
      {"hf://a/b@v1.0/x/y", "hf [a/b] [x/y] model @v1.0"},
      {"hf://a/b@607a30d783dfa663caf39e06633721c8d4cfcd7e",
       "hf [a/b] [] model @607a30d783dfa663caf39e06633721c8d4cfcd7e folder"},
      {"hf://a/b@refs/pr/3", "hf [a/b] [] model @refs/pr/3 folder"},
      {"hf://a/b@refs/pr/3/x/", "hf [a/b] [x/] model @refs/pr/3 folder"},
      {"hf://datasets/a/b@refs/convert/parquet/default/train",
       "hf [a/b] [default/train] dataset @refs/convert/parquet"},
      {"hf://a/b@refs%2Fpr%2F3/x", "hf [a/b] [x] model @refs/pr/3"},
      {"hf://a/b@feature%2fnew/x", "hf [a/b] [x] model @feature/new"},
      {"hf://a/b@caf%C3%A9", "hf [a/b] [] model @café folder"},
      // KServe's
      {"hf://a/b:v2", "hf [a/b] [] model @v2 folder"},
      {"hf://a/b:refs/pr/3", "hf [a/b] [] model @refs/pr/3 folder"},
      {"hf://a/b:v2/x", "hf [a/b] [x] model @v2"},
      // Paths are taken literally.
      {"hf://a/b/c@d:e/f", "hf [a/b] [c@d:e/f] model @"},
      {"hf://a/b/c%20d?e#f", "hf [a/b] [c%20d?e#f] model @"},
      {"hf://a/b@main/c@d", "hf [a/b] [c@d] model @main"},
  });
}

TEST(Source, RoleDecidesTheRepositorysTypeUnlessNamed) {
  EXPECT_EQ(Read("hf://a/b", Role::kModel), "hf [a/b] [] model @ folder");
  EXPECT_EQ(Read("hf://a/b", Role::kDataset), "hf [a/b] [] dataset @ folder");
  EXPECT_EQ(Read("hf://models/a/b", Role::kDataset), "hf [a/b] [] model @ folder");
  EXPECT_EQ(Read("hf://datasets/a/b", Role::kModel), "hf [a/b] [] dataset @ folder");
  EXPECT_EQ(Read("hf://spaces/a/b", Role::kDataset), "hf [a/b] [] space @ folder");
  EXPECT_EQ(Read("s3://a/b", Role::kDataset), Read("s3://a/b", Role::kModel));
}

TEST(Source, HubRepositoriesThatAreNone) {
  ExpectErrors({
      {"hf://",
       "the source 'hf://': a repository has a namespace, as in openai-community/gpt2; expected is "
       "hf://[models/|datasets/|spaces/]NAMESPACE/NAME[@REVISION][/PATH]"},
      {"hf://gpt2", "a repository has a namespace"},
      {"hf://gpt2@main", "'hf://gpt2@main': a repository has a namespace"},
      {"hf://gpt2:main/x", "a repository has a namespace"},
      {"hf://gpt2/", "a repository has a namespace"},
      {"hf://datasets", "a repository has a namespace"},
      {"hf://datasets/squad", "a repository has a namespace"},
      {"hf:///a/b", "a repository has a namespace"},
      {"hf://a//b", "a repository has a namespace"},
      {"hf://model/a/b", "write models/ for model/"},
      {"hf://dataset/a/b", "write datasets/ for dataset/"},
      {"hf://space/a/b", "write spaces/ for space/"},
      {"hf://kernels/a/b", "kernels of the hub are not supported"},
      {"hf://buckets/a/b", "buckets of the hub are not supported"},
      {"hf://a/..", "'..' is not a name on the hub"},
      {"hf://../a", "'..' is not a name on the hub"},
      {"hf://a/b?x", "'b?x' is not a name on the hub"},
      {"hf://a b/c", "'a b' is not a name on the hub"},
      {"hf://a/b%2Fc", "'b%2Fc' is not a name on the hub"},
      {"hf://a/b@", "'' is not a revision (a branch, a tag, a commit)"},
      {"hf://a/b:", "'' is not a revision"},
      {"hf://a/b@/x", "'' is not a revision"},
      {"hf://a/b@x..y", "'x..y' is not a revision"},
      {"hf://a/b@..", "'..' is not a revision"},
      {"hf://a/b@main:x", "'main:x' is not a revision"},
      {"hf://a/b@%00", "'\\x00' is not a revision"},
      {"hf://a/b@%ff", "'\\xff' is not a revision"},
      {"hf://a/b@a%20b", "'a b' is not a revision"},
      {"hf://a/b@%2Fa", "'/a' is not a revision"},
      {"hf://a/b@refs%2F..%2Fx", "is not a revision"},
      {"hf://a/b@HEAD~1", "'HEAD~1' is not a revision"},
      {"hf://a/b@refs/heads/main",
       "'refs' is not a revision; write refs/pr/N, refs/convert/NAME, or a branch with %2F for '/'"},
      {"hf://a/b@refs/pr", "'refs' is not a revision; write"},
      {"hf://a/b@refs/pr/", "'refs/pr/' is not a revision"},
      {"hf://a/b/../c", "write the path in the repository without '.', '..' and '//'"},
      {"hf://a/b//", "write the path in the repository without"},
      {"hf://a/b//c", "write the path in the repository without"},
      {"hf://a/b@main//c", "write the path in the repository without"},
      {"hf://a/b/./", "write the path in the repository without"},
  });
}

TEST(Source, ClaimsAndPathsAreRead) {
  ExpectAll({
      {"pvc://claim", "pvc [claim] [] folder"},
      {"pvc://claim/", "pvc [claim] [] folder"},
      {"pvc://my.claim-1/models/a", "pvc [my.claim-1] [models/a]"},
      {"pvc://claim/models/a/", "pvc [claim] [models/a/] folder"},
      {"pvc://claim/a%20b c", "pvc [claim] [a%20b c]"},
  });
  ExpectErrors({
      {"pvc://", "the source 'pvc://': it names no claim: after the two slashes comes CLAIM[/PATH]"},
      {"pvc:///a", "it names no claim"},
      {"pvc://Claim/a", "'Claim' is not a claim's name (lower-case letters, digits, '-', '.')"},
      {"pvc://a_b", "'a_b' is not a claim's name"},
      {"pvc://../a", "'..' is not a claim's name"},
      {"pvc://a-/b", "'a-' is not a claim's name"},
      {"pvc://claim/..", "write the path in the claim without '.', '..' and '//'"},
      {"pvc://claim/a/../../b", "write the path in the claim without"},
      {"pvc://claim/../b/", "write the path in the claim without"},
      {"pvc://claim/./b", "write the path in the claim without"},
      {"pvc://claim//", "write the path in the claim without"},
      {"pvc://claim//b", "write the path in the claim without"},
  });
}

TEST(Source, PathsOfThisMachineAreRead) {
  ExpectAll({
      {"file:///data/a", "file [] [/data/a]"},
      {"file:///data/", "file [] [/data/] folder"},
      {"file:///", "file [] [/] folder"},
      {"file://localhost/data", "file [] [/data]"},
      {"file:///a%20b?c#d", "file [] [/a%20b?c#d]"},
  });
  ExpectErrors({
      {"file://data/x", "a path of this machine has three slashes before it; write file:///data/x"},
      {"file://", "it names no path; write file:///PATH"},
      {"file://localhost", "it names no path"},
      {"file:/data", "after file: come two slashes"},
  });
}

TEST(Source, HttpUrisAreRead) {
  ExpectAll({
      {"https://host/a/b.tar", "http [host] [/a/b.tar]"},
      {"http://host:8080/a", "http [host:8080] [/a] plain"},
      {"HTTPS://Host.Example/A", "http [host.example] [/A]"},
      {"https://[fd00::1]/a", "http [[fd00::1]] [/a]"},
      {"https://[fd00::1]:443/a", "http [[fd00::1]:443] [/a]"},
      {"https://10.0.0.1/a%20b?v=d&e", "http [10.0.0.1] [/a%20b?v=d&e]"},
      {"https://host/a?ref=/", "http [host] [/a?ref=/]"},
      {"https://host/a/@scope/b", "http [host] [/a/@scope/b]"},
      {"https://huggingface.co/a/b/resolve/main/c.json", "http [huggingface.co] [/a/b/resolve/main/c.json]"},
  });
  EXPECT_EQ(Read("https://host/a?b#c"), "http [host] [/a?b]");
  EXPECT_EQ(ParseSource("https://host/a?b#c", Role::kModel)->uri, "https://host/a?b");
  ExpectErrors({
      {"https://", "the source 'https://...': after the two slashes comes HOST[:PORT]/PATH"},
      {"https:///a", "HOST[:PORT]/PATH"},
      {"http://ho st/a", "the source 'http://...': after the two slashes comes HOST[:PORT]/PATH"},
      {"http://host:/a", "HOST[:PORT]/PATH"},
      {"http://host:0/a", "HOST[:PORT]/PATH"},
      {"http://host:65536/a", "HOST[:PORT]/PATH"},
      {"http://host:80x/a", "HOST[:PORT]/PATH"},
      {"http://[fd00::1/a", "HOST[:PORT]/PATH"},
      {"http://[]/a", "HOST[:PORT]/PATH"},
      {"http://[fd00::1]x/a", "HOST[:PORT]/PATH"},
      {"http://fd00::1/a", "HOST[:PORT]/PATH"},
      {"https://host", "it names no file, and folders cannot be listed over http; write https://HOST/PATH/FILE"},
      {"https://host/", "it names no file"},
      {"https://host/a/", "it names no file"},
      {"https://host/?a=b", "it names no file"},
      {"https://host?a=b", "it names no file"},
      {"https://host/a b", "a space in it is written %20"},
      {"https://huggingface.co/a/b", "write hf://NAMESPACE/NAME for a repository"},
      {"https://hf.co/a/b/tree/main", "write hf://NAMESPACE/NAME for a repository"},
      {"https://host/a#sha256=", "is not a SHA-256: it has 64 hex digits"},
      {"https://host/a#sha256=00", "'#sha256=00' is not a SHA-256: it has 64 hex digits"},
      {"https://host/a#md5=passw0rd", "'#md5=' is not known in a fragment, only #sha256=HEX is; leave it out"},
  });
}

TEST(Source, HashInTheFragment) {
  const std::string hex(64, 'A'), uri = "https://host/a.tar.gz?sig=s#sha256=" + hex;
  const auto source = ParseSource(uri, Role::kModel);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->path, "/a.tar.gz?sig=s");
  EXPECT_EQ(source->uri, "https://host/a.tar.gz?sig=...#sha256=" + hex);
  ASSERT_TRUE(source->expected);
  EXPECT_EQ(Describe(*source->expected), "sha256:" + std::string(64, 'a'));
}

TEST(Source, ShowsNoSecrets) {
  for (std::string_view scheme : {"http", "https", "s3", "gs", "pvc", "file"}) {
    const std::string error = Read(fmt::format("{}://user:passw0rd@host/a", scheme));
    EXPECT_THAT(error,
                HasSubstr(fmt::format("the source '{}://host/a': a user and password have no place in a URI", scheme)));
    EXPECT_THAT(error, Not(HasSubstr("passw0rd")));
  }
  // The message names a variable that can be set.
  for (std::string_view uri :
       {"hf://user:passw0rd@a/b", "hf://hf_passw0rd@a/b", "hf://user:passw0rd@huggingface.co/a/b"}) {
    EXPECT_THAT(Read(uri), AllOf(HasSubstr("set HF_TOKEN from a Secret"), Not(HasSubstr("passw0rd")))) << uri;
  }
  EXPECT_THAT(Read("s3://user:passw0rd@b/a"), HasSubstr("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY from a Secret"));
  EXPECT_THAT(Read("gs://user:passw0rd@b/a"), HasSubstr("GOOGLE_APPLICATION_CREDENTIALS"));
  EXPECT_THAT(Read("https://user:passw0rd@host/a"), AllOf(HasSubstr("signed URL"), Not(HasSubstr("Secret"))));
  EXPECT_THAT(Read("pvc://user:passw0rd@claim/a"), AllOf(HasSubstr("it needs none"), Not(HasSubstr("Secret"))));
  for (std::string_view uri :
       {"https://user:passw0rd@host/", "https://a@b:passw0rd@host/\n", "ftp://user:passw0rd@host/x",
        "https://user:passw0rd/x@host/y", "https://passw0rd@host\xff/"}) {
    EXPECT_THAT(Read(uri), Not(HasSubstr("passw0rd"))) << uri;
    EXPECT_THAT(Read(uri), HasSubstr("error")) << uri;
  }
  auto source = ParseSource(
      "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4&X-Amz-Credential=AK/"
      "x&x-amz-signature=ab&versionId=3&sig=1&Key=&a",
      Role::kModel);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->uri,
            "https://b.s3.amazonaws.com/"
            "k?X-Amz-Algorithm=AWS4&X-Amz-Credential=...&x-amz-signature=...&versionId=3&sig=...&Key=&a");
  EXPECT_THAT(source->path, HasSubstr("x-amz-signature=ab"));
  EXPECT_EQ(ParseSource("https://h/k?a=b&&c=%20&d=e=f&access_token=t=u", Role::kModel)->uri,
            "https://h/k?a=...&&c=...&d=...&access_token=...");
  for (std::string_view name : {"auth", "jwt", "code", "pass", "pwd", "Authorization", "X-Amz-Security-Token", "st"}) {
    const std::string uri = fmt::format("https://h/k?{}=s3cret&id=7&Version=2", name);
    EXPECT_EQ(ParseSource(uri, Role::kModel)->uri, fmt::format("https://h/k?{}=...&id=7&Version=2", name));
  }
}

}  // namespace
}  // namespace muster::initializers
