#include "initializers/initialize.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <map>
#include <random>
#include <set>

#include "base/exit_codes.h"
#include "base/text.h"
#include "base/version.h"
#include "initializers/entry_path.h"
#include "initializers/open_source.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

constexpr char kNext[] = "next.json";

int64_t ModifiedOf(const struct stat& facts) {
  return int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
}

std::string SelectionOf(const InitializeOptions& options) {
  std::string text;
  for (const std::string& pattern : options.include) text += fmt::format("+{}\n", pattern);
  for (const std::string& pattern : options.ignore) text += fmt::format("-{}\n", pattern);
  if (!options.version_id.empty()) text += fmt::format("@{}\n", options.version_id);
  return text;
}

}  // namespace

int ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
      return kExitBadConfiguration;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return kExitSourceUnreachable;
    default:
      return 1;
  }
}

class Initialize::Impl {
 public:
  Impl(asio::io_context& loop, InitializeOptions options, Getenv getenv, Events events)
      : loop_(loop), options_(std::move(options)), getenv_(std::move(getenv)), events_(std::move(events)) {}

  void Begin();
  TransferCounts counts() const { return transfer_ ? transfer_->counts() : TransferCounts(); }

 private:
  Status SetUp();
  Status MakeProvider();
  Status FinishPublishing();
  bool IsComplete();
  bool IsAsWritten(const ManifestFile& file) const;
  void List();
  Status Page(std::vector<Entry> entries);
  Status CheckRoom() const;
  void Listed(Status status);
  void Transferred(Status status);
  Status Publish();
  Status Settle(const Manifest& manifest);
  void End(Status status);
  StatusOr<std::string> ReadOwn(const char* name) const;

  asio::io_context& loop_;
  InitializeOptions options_;
  const Getenv getenv_;
  Events events_;
  const TimePoint began_ = MonotonicClock::now();
  std::mt19937_64 random_{std::random_device{}()};
  Source source_;
  OpenedSource opened_;
  std::unique_ptr<Staging> staging_;
  std::unique_ptr<DiskPool> pool_;
  std::unique_ptr<Transfer> transfer_;
  Provider::Handle listing_;
  EntryPaths paths_;
  std::map<std::string, ManifestFile> before_;  // complete then, by path
  std::vector<ManifestFile> files_;             // of this run
  std::vector<Staging::Place> places_;
  Staging::Room room_;
  uint64_t needed_bytes_ = 0, needed_files_ = 0;
  InitializeResult result_;
  bool ended_ = false;
};

void Initialize::Impl::Begin() {
  Status status = SetUp();
  if (!status.ok()) {
    asio::post(loop_, [this, status] { End(status); });
    return;
  }
  if (opened_.provider == nullptr) {  // complete, and nothing can have changed
    asio::post(loop_, [this] {
      result_.unchanged = true;
      End(absl::OkStatus());
    });
    return;
  }
  List();
}

Status Initialize::Impl::SetUp() {
  MUSTER_ASSIGN_OR_RETURN(source_, ParseSource(options_.uri, options_.role));
  result_.source = source_.uri;
  result_.target = options_.target;
  const bool interrupted = ReadOwn(kNext).ok();
  if (!interrupted && IsComplete()) return absl::OkStatus();  // without a write: the target may be read-only by now
  if (!options_.dry_run) {
    MUSTER_ASSIGN_OR_RETURN(staging_, Staging::Open(options_.target));
    if (interrupted) {
      MUSTER_RETURN_IF_ERROR(FinishPublishing());
      if (IsComplete()) return absl::OkStatus();
    }
    MUSTER_ASSIGN_OR_RETURN(room_, staging_->room());
  }
  return MakeProvider();
}

StatusOr<std::string> Initialize::Impl::ReadOwn(const char* name) const {
  const std::string path = fmt::format("{}/{}/{}", options_.target, kOwnFolder, name);
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.ok()) return ErrnoStatus(errno, path);
  std::string text;
  std::string buffer(1 << 16, '\0');
  ssize_t got = 0;
  while ((got = read(file.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer, 0, static_cast<size_t>(got));
    if (text.size() > kLongestManifest) return absl::InvalidArgumentError(fmt::format("{} is too long", path));
  }
  if (got < 0) return ErrnoStatus(errno, path);
  return text;
}

// An earlier start was killed while it renamed: what is still staged goes where it belongs.
Status Initialize::Impl::FinishPublishing() {
  auto text = ReadOwn(kNext);
  if (!text.ok()) return absl::OkStatus();
  auto next = ReadManifest(*text);
  if (!next.ok()) {
    events_.say(fmt::format("{}/{}/{} cannot be read ({}); beginning anew", options_.target, kOwnFolder, kNext,
                            Message(next.status())));
    return absl::OkStatus();
  }
  for (const ManifestFile& file : next->files) {
    Entry entry;
    entry.path = file.path;
    entry.size = file.size;
    entry.version = file.version;
    std::string name = Staging::NameOf(next->source, entry);
    if (staging_->IsWhole(name)) places_.push_back({std::move(name), file.path});
  }
  MUSTER_RETURN_IF_ERROR(staging_->Publish(std::exchange(places_, {}), false));
  Status settled = Settle(*std::move(next));
  if (!settled.ok()) events_.say(fmt::format("{}; beginning anew", Message(settled)));
  return absl::OkStatus();
}

bool Initialize::Impl::IsAsWritten(const ManifestFile& file) const {
  struct stat facts {};
  const std::string path = fmt::format("{}/{}", options_.target, file.path);
  if (lstat(path.c_str(), &facts) != 0) return false;
  if (file.path.ends_with('/')) return S_ISDIR(facts.st_mode);
  return S_ISREG(facts.st_mode) && static_cast<uint64_t>(facts.st_size) == file.size &&
         ModifiedOf(facts) == file.modified_ns;
}

bool Initialize::Impl::IsComplete() {
  auto text = ReadOwn(kManifestName);
  if (!text.ok()) return false;
  auto manifest = ReadManifest(*text);
  if (!manifest.ok()) {
    events_.say(
        fmt::format("the manifest cannot be read ({}); what is there is fetched again", Message(manifest.status())));
    return false;
  }
  if (manifest->source != source_.uri || manifest->selection != SelectionOf(options_)) return false;
  bool all = true;
  for (ManifestFile& file : manifest->files) {
    ++result_.files;
    result_.bytes += file.size;
    if (!IsAsWritten(file)) {
      all = false;
      continue;
    }
    std::string path = file.path;
    before_.emplace(std::move(path), std::move(file));
  }
  const bool pinned =
      !options_.version_id.empty() || (!manifest->version.empty() && manifest->version == source_.revision);
  if (all && pinned) {
    result_.kept_files = result_.files;
    return true;
  }
  result_.files = result_.bytes = 0;
  return false;
}

Status Initialize::Impl::MakeProvider() {
  auto random = [this] { return std::uniform_real_distribution<double>(0, 1)(random_); };
  SourceSettings settings;
  settings.anonymous = options_.anonymous;
  settings.version_id = options_.version_id;
  settings.http = options_.http;
  settings.limits = options_.transfer.limits;
  settings.retry = options_.transfer.retry;
  MUSTER_ASSIGN_OR_RETURN(opened_, OpenSource(loop_, source_, std::move(settings), getenv_, random, events_.say));
  options_.transfer.source = source_.uri;
  pool_ = std::make_unique<DiskPool>(loop_, options_.threads, options_.blocks);
  return absl::OkStatus();
}

void Initialize::Impl::List() {
  if (!options_.dry_run) {
    Transfer::Events events;
    events.file = [this](TransferredFile file) {
      places_.push_back({file.name, file.entry.path});
      result_.unverified_files += !file.verified && !file.entry.content;
      files_.push_back({std::move(file.entry.path), file.entry.size, std::move(file.hash), file.verified,
                        std::move(file.entry.version), 0});
    };
    events.say = events_.say;
    events.end = [this](Status status) { Transferred(std::move(status)); };
    transfer_ = std::make_unique<Transfer>(loop_, *opened_.http, *opened_.provider, *staging_, *pool_,
                                           options_.transfer, std::move(events));
  }
  Provider::Listing listing;
  listing.page = [this](std::vector<Entry> entries) {
    if (ended_) return;
    Status status = Page(std::move(entries));
    if (!status.ok()) asio::post(loop_, [this, status] { End(status); });
  };
  listing.end = [this](Status status) { Listed(std::move(status)); };
  listing_ = opened_.provider->List(std::move(listing));
}

Status Initialize::Impl::Page(std::vector<Entry> entries) {
  std::vector<Entry> missing;
  for (Entry& entry : entries) {
    if (!IsWanted(entry.path, options_.include, options_.ignore)) continue;
    const bool folder = entry.path.ends_with('/');
    const std::string name = folder ? entry.path.substr(0, entry.path.size() - 1) : entry.path;
    MUSTER_RETURN_IF_ERROR(Annotate(CheckEntryPath(name), entry.key));
    ++result_.files;
    result_.bytes += entry.size;
    if (folder) {
      files_.push_back({entry.path, 0, "", true, "", 0});
      places_.push_back({"", entry.path});
      continue;
    }
    MUSTER_RETURN_IF_ERROR(paths_.Add(entry.path));
    auto before = before_.find(entry.path);
    const bool kept = before != before_.end() && !entry.version.empty() && before->second.version == entry.version &&
                      before->second.size == entry.size;
    if (kept) {
      ++result_.kept_files;
      files_.push_back(std::move(before->second));
      before_.erase(before);
      continue;
    }
    ++needed_files_;
    needed_bytes_ += (entry.size + 4095) / 4096 * 4096;
    missing.push_back(std::move(entry));
  }
  MUSTER_RETURN_IF_ERROR(CheckRoom());
  if (transfer_) transfer_->Add(std::move(missing));
  return absl::OkStatus();
}

Status Initialize::Impl::CheckRoom() const {
  if (options_.dry_run) return absl::OkStatus();
  if (needed_bytes_ > room_.bytes) {
    return absl::ResourceExhaustedError(fmt::format("{} needs {} bytes and {} are free in {}: give it a larger volume",
                                                    source_.uri, needed_bytes_, room_.bytes, options_.target));
  }
  if (room_.files != 0 && needed_files_ > room_.files) {
    return absl::ResourceExhaustedError(
        fmt::format("{} has {} files and there is room for {} more in {} (inodes): give it another volume", source_.uri,
                    needed_files_, room_.files, options_.target));
  }
  return absl::OkStatus();
}

void Initialize::Impl::Listed(Status status) {
  if (ended_) return;
  if (!status.ok() || options_.dry_run) {
    asio::post(loop_, [this, status] { End(status); });
    return;
  }
  if (result_.files == 0) {
    status = absl::NotFoundError(fmt::format("{}: nothing in it is wanted; check --include and --ignore", source_.uri));
    asio::post(loop_, [this, status] { End(status); });
    return;
  }
  transfer_->EndOfList();
}

void Initialize::Impl::Transferred(Status status) {
  if (ended_) return;
  if (status.ok()) status = Publish();
  End(status);
}

Status Initialize::Impl::Publish() {
  result_.counts = transfer_->counts();
  if (places_.empty() && before_.empty() && result_.kept_files == result_.files) {
    result_.unchanged = true;
    return absl::OkStatus();
  }
  Manifest manifest;
  manifest.source = source_.uri;
  manifest.version = opened_.provider->version();
  manifest.endpoint = opened_.provider->endpoint();
  manifest.selection = SelectionOf(options_);
  manifest.tool = fmt::format("muster {} ({})", Version(), Commit());
  manifest.completed_unix_ms = UnixMillis();
  std::sort(files_.begin(), files_.end(), [](const ManifestFile& a, const ManifestFile& b) { return a.path < b.path; });
  manifest.files = std::move(files_);
  MUSTER_RETURN_IF_ERROR(staging_->WriteOwn(kNext, WriteManifest(manifest)));
  staging_->RemoveOwn(kManifestName);  // what it says does not hold while files are replaced
  MUSTER_RETURN_IF_ERROR(staging_->Publish(places_, true));
  return Settle(manifest);
}

// Everything is where it belongs: next.json becomes the manifest. DataLoss: something is not there.
Status Initialize::Impl::Settle(const Manifest& manifest) {
  Manifest complete = manifest;
  for (ManifestFile& file : complete.files) {
    struct stat facts {};
    const std::string path = fmt::format("{}/{}", options_.target, file.path);
    const bool there = lstat(path.c_str(), &facts) == 0;
    const bool folder = file.path.ends_with('/');
    if (!there || (!folder && static_cast<uint64_t>(facts.st_size) != file.size)) {
      return absl::DataLossError(fmt::format("{} is not there as it was published", path));
    }
    file.modified_ns = folder ? 0 : ModifiedOf(facts);
  }
  MUSTER_RETURN_IF_ERROR(staging_->WriteOwn(kManifestName, WriteManifest(complete)));
  staging_->RemoveOwn(kNext);
  staging_->Clear();
  return absl::OkStatus();
}

void Initialize::Impl::End(Status status) {
  if (std::exchange(ended_, true)) return;
  if (transfer_) result_.counts = transfer_->counts();
  listing_.reset();
  transfer_.reset();
  if (status.ok() && result_.unchanged && staging_) staging_->Clear();
  result_.seconds = std::chrono::duration<double>(MonotonicClock::now() - began_).count();
  events_.end(status.ok() ? StatusOr<InitializeResult>(result_) : status);
}

Initialize::Initialize(asio::io_context& loop, InitializeOptions options, Getenv getenv, Events events)
    : impl_(std::make_unique<Impl>(loop, std::move(options), std::move(getenv), std::move(events))) {}
Initialize::~Initialize() = default;
void Initialize::Begin() { impl_->Begin(); }
TransferCounts Initialize::counts() const { return impl_->counts(); }

}  // namespace muster::initializers
