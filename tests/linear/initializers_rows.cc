// SPDX-License-Identifier: Apache-2.0
// The initializer: source URIs, staging files and manifests, archives, answers of stores and identities.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/text.h"
#include "http/retry.h"
#include "initializers/archives/archive_reader.h"
#include "initializers/aws/answers.h"
#include "initializers/aws/config.h"
#include "initializers/aws/identity.h"
#include "initializers/aws/s3_answers.h"
#include "initializers/aws/s3_checksums.h"
#include "initializers/aws/settings.h"
#include "initializers/facts/command_words.h"
#include "initializers/facts/digest.h"
#include "initializers/facts/entry_path.h"
#include "initializers/facts/source.h"
#include "initializers/google/answers.h"
#include "initializers/google/gcs_answers.h"
#include "initializers/google/identity.h"
#include "initializers/stores/hub_answers.h"
#include "initializers/stores/web_file.h"
#include "initializers/stores/xml_error.h"
#include "initializers/target/manifest.h"
#include "initializers/target/staging_lines.h"
#include "tests/linear/linear.h"

namespace muster::initializers {
namespace {

void Uri(const std::string& text) { (void)ParseSource(text, Role::kModel); }

void Ranges(const std::string& text) { ReadRangeLines(text, uint64_t{1} << 40); }

void Hashes(const std::string& text) {
  HashLines lines([](const std::string&) { return true; });
  for (size_t at = 0; at < text.size(); at += 100) lines.Add(std::string_view(text).substr(at, 100));
  std::move(lines).End();
}

void AManifest(const std::string& text) {
  const auto manifest = ReadManifest(text);
  if (manifest.ok()) WriteManifest(*manifest);
}

std::string FileOfManifest(size_t number) {
  return fmt::format(R"({}{{"path":"a/{:09}","size":1,"hash":"","verified":false,"version":"","modified_ns":0}})",
                     number == 0 ? "" : ",", number);
}
constexpr std::string_view kManifestBegins =
    R"({"schema":1,"source":"s3://b/","version":"","endpoint":"","selection":"","tool":"","completed_unix_ms":0,"files":[)";

// Lines are the names of one listing.
void Names(const std::string& text) {
  EntryPaths paths;
  for (const std::string_view name : Split(text, '\n')) {
    if (CheckEntryPath(name).ok()) (void)paths.Add(name);
  }
}

// The whole text is one name. The pattern has several stars, and a set.
void Pattern(const std::string& text) {
  IsWanted(text, {"*a*a*[!x-z]*b"}, {"*[*[*[*[c"});
  MayHoldWanted(text, {"*a*a*b/"}, {"*c"});
}

std::string TarHeader(std::string_view name, char kind, size_t size) {
  std::string header(512, '\0');
  const auto put = [&header](size_t at, std::string_view text) { header.replace(at, text.size(), text); };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", size));
  put(136, "00000000000");
  put(148, "        ");
  header[156] = kind;
  put(157, kind == '2' ? "target" : "");
  put(257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const unsigned char byte : header) sum += byte;
  put(148, fmt::format("{:06o}", sum));
  header[154] = '\0';
  return header;
}

// A member whose name has the extended header's length.
std::string LongName(size_t parts) {
  const std::string path = "path=" + std::string(20 * parts, 'a') + "\n";
  size_t size = path.size() + 2;
  while (fmt::format("{}", size).size() + 1 + path.size() != size) ++size;
  std::string record = fmt::format("{} {}", size, path);
  const std::string header = TarHeader("x", 'x', record.size());
  record.resize((record.size() + 511) / 512 * 512);
  return header + record + TarHeader("short", '0', 0);
}

void Archive(const std::string& bytes) {
  Descriptor file(memfd_create("linear", MFD_CLOEXEC));
  ASSERT_EQ(write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  WindowLimits windows;
  auto reader = ArchiveReader::Open(std::move(file), "linear.tar", windows);
  if (!reader.ok()) return;
  while (true) {
    const auto member = (*reader)->Next([](std::string_view) { return true; });
    if (!member.ok() || !*member) return;
  }
}

// A config file, and a credentials file like it.
void AwsFiles(const std::string& text) {
  const auto read = [&text](const std::string&) -> StatusOr<std::string> { return text; };
  const auto config = AwsConfig::Read({}, read, "/home/u");
  if (!config.ok()) return;
  (void)FindAwsIdentity(*config);
  (void)FindS3Place(*config, "bucket");
}

void Page(const std::string& text) { (void)ParseS3Page(text); }
constexpr std::string_view kPageBegins = "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
constexpr std::string_view kPageEnds = "</ListBucketResult>";

// An unknown member with a list of lists, in an object.
constexpr std::string_view kListBegins = R"({"a":[)", kListEnds = "[]]}";

void Machine(const std::string& text) {
  (void)ParseMachineKeys(text);
  (void)ParseProcessKeys(text);
  (void)ParseSsoKeys(text);
  (void)ParseWord(text);
}

void Google(const std::string& text) {
  (void)ParseOauthToken(text);
  (void)ParseIamToken(text, 0);
  SubjectTokenIn(text, "a");
  ToldByGoogle(400, text);
}

void GoogleFile(const std::string& text) {
  const auto read = [&text](const std::string&) -> StatusOr<std::string> { return text; };
  (void)FindGoogleIdentity({{"GOOGLE_APPLICATION_CREDENTIALS", "/key.json"}}, read, "");
}

void Gcs(const std::string& text) {
  (void)ParseObjects(text);
  RefusalOfGcs({.status = 404}, text, "gs://b/o", 0);
}

void Tree(const std::string& text) { (void)ParseTree(text); }

// The value of each header that is parsed.
void Headers(const std::string& text) {
  http::ParseRetryAfter(text, 0);
  http::ParseRateLimit(text);
  (void)ParseExpectation(text);
  (void)FromHex(text);
  ParseDigestHeader(text);
  NextLink(text);
  const auto read = [&text](std::string_view) { return std::optional(text); };
  ExpectationOf(read, text, 1000, 10);
}

const std::vector<LinearRow> kRows = {
    {"source", "Path", Repeats("a/", "s3://bucket/"), Uri},
    {"source", "Query", Repeats("a=b&", "https://host/file?"), Uri},
    {"source", "Scheme", Repeats("a"), Uri},
    {"staging_lines", "Ranges", Numbers([](size_t number) {
       return WriteRangeLine({.range = {10 * number, 10}, .crc32c = 1});
     }),
     Ranges},
    {"staging_lines", "Backwards", Numbers([](size_t number) {
       return WriteRangeLine({.range = {(uint64_t{1} << 30) - 10 * number, 10}, .crc32c = 1});
     }),
     Ranges},
    {"staging_lines", "Hashes",
     Numbers([](size_t number) { return WriteHashLine(fmt::format("name{}", number), {.hash = "md5:00"}); }), Hashes},
    {"staging_lines", "OneLine", Repeats("word "), Hashes},
    {"manifest", "Files", Numbers(FileOfManifest, kManifestBegins, "]}"), AManifest},
    {"manifest", "UnknownFields", Repeats("{\"a\":[]},", "{\"b\":[", "1]}"), AManifest},
    {"manifest", "OneText", Repeats("word ", "{\"source\":\"", "\"}"), AManifest},
    {"entry_path", "Names", Numbers([](size_t number) { return fmt::format("a/{}/b\n", number); }), Names},
    {"entry_path", "Deep", Numbers([](size_t number) {
       return fmt::format("{}/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a\n", number % 7);
     }),
     Names},
    {"entry_path", "LongName", Repeats("a"), Pattern},
    {"entry_path", "LongNameOfSlashes", Repeats("a/"), Pattern},
    {"entry_path", "Brackets", Repeats("["), Pattern},
    {"archive_reader", "Files", Numbers([](size_t number) { return TarHeader(fmt::format("a/{}", number), '0', 0); }),
     Archive},
    {"archive_reader", "Links", Numbers([](size_t number) { return TarHeader(fmt::format("a/{}", number), '2', 0); }),
     Archive},
    {"archive_reader", "LongName", LongName, Archive},
    {"archive_reader", "Zeros", [](size_t parts) { return TarHeader("a", '0', 0) + std::string(512 * parts, '\0'); },
     Archive},
    {"aws_settings", "Sections",
     Numbers([](size_t number) { return fmt::format("[profile p{}]\nregion = eu-west-1\n", number); },
             "[default]\nregion=eu-west-1\n"),
     AwsFiles},
    {"aws_settings", "Keys",
     Numbers([](size_t number) { return fmt::format("key{} = value\n", number); }, "[default]\n"), AwsFiles},
    {"aws_settings", "LongKey",
     [](size_t parts) {
       std::string text = "[default]\n" + std::string(10 * parts, 'k') + " =\n";
       for (size_t number = 0; number < parts; ++number) text += fmt::format(" a{} = b\n", number);
       return text;
     },
     AwsFiles},
    {"aws_settings", "LongValue", Repeats(" more\n", "[default]\nkey = value\n"), AwsFiles},
    {"aws_settings", "EmptyLines", Repeats("\n", "[default]\n"), AwsFiles},
    {"aws_settings", "Process", Repeats("'a' b\\ c\"d\" "), [](const std::string& text) { (void)SplitWords(text); }},
    {"s3_answers", "Objects",
     Numbers(
         [](size_t number) {
           return fmt::format("<Contents><Key>a%2F{}</Key><Size>1</Size><ETag>&quot;e&quot;</ETag></Contents>", number);
         },
         kPageBegins, kPageEnds),
     Page},
    {"s3_answers", "Entities", Repeats("&amp;", "<ListBucketResult><Contents><Key>"), Page},
    {"s3_answers", "Namespaces", Repeats("<a:b xmlns:a=\"c\"/>", kPageBegins, kPageEnds), Page},
    {"s3_answers", "Attributes",
     Numbers([](size_t number) { return fmt::format(" a{}=\"b\"", number); }, "<ListBucketResult",
             "></ListBucketResult>"),
     Page},
    {"s3_answers", "Deep", Repeats("<a>"), Page},
    {"s3_answers", "Comments", Repeats("<!-- a -->", kPageBegins, kPageEnds), Page},
    {"s3_answers", "Errors", Repeats("<Error><Code>a</Code></Error>", "<ErrorResponse>", "</ErrorResponse>"),
     [](const std::string& text) { ParseXmlError(text); }},
    {"s3_answers", "Credentials",
     Repeats("<Credentials><AccessKeyId>a</AccessKeyId></Credentials>", "<AssumeRoleResult>", "</AssumeRoleResult>"),
     [](const std::string& text) { (void)ParseStsAnswer(text); }},
    {"header_values", "Digits", Repeats("1"), Headers},
    {"header_values", "Limits", Repeats("\"a\";r=0;t=1,"), Headers},
    {"header_values", "Digests", Repeats("sha-256=:sha-256=:,"), Headers},
    {"header_values", "OpenDigests", Repeats("sha-256= :"), Headers},
    {"header_values", "OpenQuotes", Repeats("\"\\"), Headers},
    {"header_values", "Links", Repeats("<a>; rel=prev,"), Headers},
    {"header_values", "OpenLinks", Repeats("<a>\""), Headers},
    {"aws_answers", "Lists", Repeats("[],", kListBegins, kListEnds), Machine},
    {"aws_answers", "Words", Repeats("word ", R"({"Code":")", "\"}"), Machine},
    {"google_answers", "Lists", Repeats("[],", kListBegins, kListEnds), Google},
    {"google_answers", "Words", Repeats("word "), Google},
    {"google_identity", "Lists", Repeats("[],", R"({"type":"impersonated_service_account","delegates":[)", "[]]}"),
     GoogleFile},
    {"gcs_answers", "Objects",
     Numbers([](size_t number) { return fmt::format(R"({{"name":"a/{}","size":"1","generation":"1"}},)", number); },
             R"({"items":[)", R"({"name":"b","size":"1","generation":"1"}]})"),
     Gcs},
    {"gcs_answers", "Words", Repeats("word "), Gcs},
    {"hub_answers", "Files",
     Numbers(
         [](size_t number) {
           return fmt::format(R"({{"type":"file","path":"a/{}","size":1,"oid":"{:040}"}},)", number, number);
         },
         "[", R"({"type":"directory"}])"),
     Tree},
    {"hub_answers", "Siblings",
     Numbers(
         [](size_t number) {
           return fmt::format(R"({{"rfilename":"a/{}","size":1,"blobId":"{:040}"}},)", number, number);
         },
         R"({"siblings":[)", "{}]}"),
     [](const std::string& text) { (void)ParseSiblings(text); }},
    {"web_answers", "Parts", Repeats("a-", "bytes 0-0/"), Headers},
};

INSTANTIATE_TEST_SUITE_P(Initializers, Linear, testing::ValuesIn(kRows), NameOfRow);

}  // namespace
}  // namespace muster::initializers
