// SPDX-License-Identifier: Apache-2.0
#include "initializers/initialize.h"

#include <boost/asio/post.hpp>
#include <random>

#include "base/host_facts.h"
#include "base/text.h"
#include "base/version.h"
#include "http/client_threads.h"
#include "initializers/archives/archive_reader.h"
#include "initializers/archives/unpackers.h"
#include "initializers/facts/entry_path.h"
#include "initializers/facts/failure.h"
#include "initializers/open_source.h"
#include "initializers/stores/hub_settings.h"
#include "initializers/stores/local_folder.h"
#include "initializers/target/after_publish.h"
#include "initializers/target/earlier_run.h"
#include "initializers/target/lease.h"
#include "initializers/target/metadata_files.h"
#include "initializers/target/needed_room.h"
#include "initializers/target/publication.h"
#include "initializers/transfer/local_copy.h"
#include "initializers/transfer/transfer.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

std::string SelectionOf(const InitializeOptions& options) {
  std::string text;
  for (const std::string& pattern : options.include) text += fmt::format("+{}\n", pattern);
  for (const std::string& pattern : options.ignore) text += fmt::format("-{}\n", pattern);
  if (!options.version_id.empty()) text += fmt::format("@{}\n", options.version_id);
  if (options.extract) text += "extract\n";
  if (options.hub_cache) text += "hub cache\n";
  return text;
}

}  // namespace

class Initialize::Impl {
 public:
  Impl(asio::io_context& loop, InitializeOptions options, Environment environment, Events events)
      : loop_(loop), options_(std::move(options)), environment_(std::move(environment)), events_(std::move(events)) {}

  void Begin();
  InitializeResult so_far() const;

 private:
  Status FindOut();
  void Prepare();
  Status SetUp();
  Status OpenStaging();
  Status OpenProvider();
  StatusOr<bool> IsComplete();
  bool ThenIsDue() const { return !options_.then.empty() && HasMetadataFile(options_.target, kThenName); }
  bool Writes() const { return !options_.dry_run && unwritable_.ok(); }
  bool NothingHasChanged() const { return !any_staged_ && before_.all_kept() && result_.kept_files == result_.files; }
  void List();
  void MakeUnpackers();
  Status Page(std::vector<Entry> entries);
  Status CheckPlace(const std::string& path);
  StatusOr<bool> Keep(const Entry& entry);
  bool IsUnpacked(const std::string& path) const { return options_.extract && IsArchiveName(path); }
  void NotePlanned(const Entry& entry);
  void CountNeeded(const Entry& entry);
  bool LinkFromBefore(const Entry& entry, const std::string& name);
  Status CheckRoom(const DiskRoom& room) const { return needed_.Check(room, source_.uri, options_.target); }
  void Listed(Status status);
  Status CheckList();
  void Moved(MovedFile file);
  Status TakeUnpacked(const MovedFile& archive, StatusOr<Unpacked> unpacked);
  void Transferred(Status status);
  void PublishIfWhole();
  Status WhoseFault(Status status);
  Status Publish();
  void End(Status status);
  double Seconds() const { return std::chrono::duration<double>(MonotonicClock::now() - began_).count(); }

  asio::io_context& loop_;
  InitializeOptions options_;
  const Environment environment_;
  Events events_;
  const TimePoint began_ = MonotonicClock::now();
  std::mt19937_64 random_{std::random_device{}()};
  Source source_;
  OpenedSource opened_;
  std::unique_ptr<Lease> lease_;
  Status unwritable_;  // why the target is not writable; OK: it is, as far as known
  std::unique_ptr<Staging> staging_;
  std::unique_ptr<DiskPool> pool_;
  std::unique_ptr<http::ClientThreads> http_threads_;
  std::unique_ptr<Mover> mover_;
  Catalogue::Handle listing_;
  EntryPaths paths_;
  EarlierRun before_;
  ManifestFiles files_;  // of this run
  bool any_staged_ = false;
  DiskRoom room_;               // free space at the start; later also the space of removed leftovers
  std::vector<Entry> waiting_;  // entries that wait for room
  NeededRoom needed_;
  std::unique_ptr<Unpackers> unpackers_;  // with --extract
  size_t archives_ = 0;
  BareEndings bare_endings_{options_.ignore};
  bool transferred_ = false;
  InitializeResult result_;
  bool complete_ = false;  // everything is there, and the source cannot have changed
  bool any_ = false;       // the source has a wanted entry
  bool ended_ = false;
};

void Initialize::Impl::Begin() {
  Status status = FindOut();
  if (!status.ok() || complete_) return asio::post(loop_, [this, status] { End(status); });
  if (options_.dry_run) return Prepare();
  auto own = OpenOwnFolder(options_.target);
  if (!own.ok()) return asio::post(loop_, [this, status = own.status()] { End(status); });
  Lease::Events events;
  events.held = [this] { Prepare(); };
  events.lost = [this](Status status) { End(std::move(status)); };
  events.unwritable = [this](Status status) {
    unwritable_ = std::move(status);
    lease_.reset();
    Prepare();
  };
  events.say = events_.say;
  lease_ = std::make_unique<Lease>(loop_, *std::move(own), fmt::format("{}/{}", options_.target, kOwnFolder),
                                   options_.lease, std::move(events));
  lease_->Begin();
}

// Finds out, without writing, whether everything is there: the target may be read-only.
Status Initialize::Impl::FindOut() {
  MUSTER_ASSIGN_OR_RETURN(source_, ParseSource(options_.uri, options_.role));
  result_.source = source_.uri;
  result_.target = options_.target;
  result_.verify = options_.transfer.verify;
  if (source_.scheme == Scheme::kHuggingFace) {
    if (!options_.version_id.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: --version-id is of one object; name the revision in the URI, {}@REVISION", source_.uri,
                      source_.container));
    }
    source_.revision = FindHubRevision(source_, environment_);
  } else if (options_.hub_cache) {
    return absl::InvalidArgumentError(fmt::format("{}: --hf-cache is for hf:// sources; leave it out", source_.uri));
  }
  if (source_.expected && !options_.transfer.verify) {
    return absl::InvalidArgumentError(
        fmt::format("{}: its sha256 is checked only with --verify=full; leave one of them out", source_.uri));
  }
  if (source_.scheme == Scheme::kPvc || source_.scheme == Scheme::kFile) {
    MUSTER_ASSIGN_OR_RETURN(LocalPlace place, FindLocalPlace(source_, options_.claims, environment_));
    MUSTER_ASSIGN_OR_RETURN(complete_, IsTarget(place, options_.target));
    if (complete_) {
      events_.say(fmt::format("{} is {} itself: there is nothing to bring in", source_.uri, options_.target));
      result_.unchanged = true;
      return absl::OkStatus();
    }
  }
  if (!IsHalfPublished(options_.target) && !ThenIsDue()) {
    MUSTER_ASSIGN_OR_RETURN(complete_, IsComplete());
  }
  return absl::OkStatus();
}

// Called with the lease held, or without one in a dry run and on a read-only target. Another may have done the work.
void Initialize::Impl::Prepare() {
  Status status = SetUp();
  if (!status.ok() || complete_) return asio::post(loop_, [this, status] { End(status); });
  List();
}

Status Initialize::Impl::SetUp() {
  if (options_.dry_run) return OpenProvider();
  if (Writes()) {
    MUSTER_RETURN_IF_ERROR(OpenStaging());
  } else if (IsHalfPublished(options_.target) || ThenIsDue()) {
    return unwritable_;
  }
  MUSTER_ASSIGN_OR_RETURN(complete_, IsComplete());
  return complete_ ? absl::OkStatus() : OpenProvider();
}

Status Initialize::Impl::OpenStaging() {
  MUSTER_ASSIGN_OR_RETURN(staging_, Staging::Open(options_.target));
  const Plan plan{source_.uri, SelectionOf(options_)};
  const auto finished =
      FinishPublication(*staging_, options_.target, plan, events_.say, [this] { return lease_->StayHeld(); });
  if (!finished.ok()) return WhoseFault(finished.status());
  if (*finished) {
    MUSTER_ASSIGN_OR_RETURN(staging_, Staging::Open(options_.target));
  }
  MUSTER_ASSIGN_OR_RETURN(room_, staging_->room());
  return absl::OkStatus();
}

StatusOr<bool> Initialize::Impl::IsComplete() {
  const EarlierRun::Wanted wanted{source_.uri, SelectionOf(options_), options_.transfer.verify, options_.hub_cache};
  auto between = [this] { return lease_ == nullptr ? absl::OkStatus() : lease_->StayHeld(); };
  before_ = {};  // frees the old one first, so that memory never holds two
  MUSTER_ASSIGN_OR_RETURN(before_, EarlierRun::Read(options_.target, wanted, events_.say, between));
  const bool pinned =
      !options_.version_id.empty() || (!before_.version().empty() && before_.version() == source_.revision);
  if (!before_.whole() || !pinned) return false;
  result_.files = result_.kept_files = before_.files();
  result_.bytes = before_.bytes();
  result_.unverified_files = before_.unverified();
  result_.unchanged = true;
  return true;
}

Status Initialize::Impl::OpenProvider() {
  auto random = [this] { return std::uniform_real_distribution<double>(0, 1)(random_); };
  SourceSettings settings;
  settings.anonymous = options_.anonymous;
  settings.allow_html = options_.allow_html;
  settings.version_id = options_.version_id;
  settings.http = options_.http;
  settings.limits = options_.transfer.limits;
  settings.retry = options_.transfer.retry;
  settings.claims = options_.claims;
  settings.patterns = {options_.include, options_.ignore};
  settings.hub_cache = options_.hub_cache;
  // Unpacking keeps its threads busy for long; it and the transfer run in parallel, with half of the memory each.
  const bool both = options_.extract;
  pool_ = std::make_unique<DiskPool>(loop_, options_.threads * (both ? 2 : 1), options_.blocks / (both ? 2 : 1));
  MUSTER_ASSIGN_OR_RETURN(opened_,
                          OpenSource(loop_, *pool_, source_, std::move(settings), environment_, random, events_.say));
  options_.transfer.source = source_.uri;
  return absl::OkStatus();
}

void Initialize::Impl::List() {
  if (Writes()) {
    MoveEvents events;
    events.file = [this](MovedFile file) { Moved(std::move(file)); };
    events.say = events_.say;
    events.end = [this](Status status) { Transferred(std::move(status)); };
    if (opened_.provider != nullptr) {
      http_threads_ = std::make_unique<http::ClientThreads>(loop_, opened_.http->options(), options_.receivers);
      const TransferContext context{*opened_.http, *http_threads_, *opened_.provider, *staging_, *pool_};
      mover_ = std::make_unique<Transfer>(loop_, context, options_.transfer, std::move(events));
    } else {
      LocalCopyOptions copy;
      copy.source = source_.uri;
      copy.verify = options_.transfer.verify;
      copy.hard_links = options_.hard_links;
      mover_ = MakeLocalCopy(loop_, *staging_, *pool_, std::move(copy), std::move(events));
    }
    if (options_.extract) MakeUnpackers();
  }
  Catalogue::Listing listing;
  listing.page = [this](std::vector<Entry> entries) {
    if (ended_) return;
    Status status = Page(std::move(entries));
    if (!status.ok()) asio::post(loop_, [this, status] { End(status); });
  };
  listing.end = [this](Status status) { Listed(std::move(status)); };
  listing_ = opened_.catalogue->List(std::move(listing));
}

void Initialize::Impl::MakeUnpackers() {
  UnpackOptions unpack{source_.uri, options_.ignore, options_.unpack};
  BoundWindows(ReadHostFacts().memory_limit, options_.threads, unpack.windows.get());
  auto done = [this](const MovedFile& archive, StatusOr<Unpacked> unpacked) {
    if (ended_) return;
    Status status = TakeUnpacked(archive, std::move(unpacked));
    if (!status.ok()) return End(std::move(status));
    PublishIfWhole();
  };
  unpackers_ = std::make_unique<Unpackers>(*pool_, options_.threads, *staging_, std::move(unpack), std::move(done));
}

Status Initialize::Impl::Page(std::vector<Entry> entries) {
  std::vector<Entry> missing;
  for (Entry& entry : entries) {
    const bool reference = options_.hub_cache && entry.key.empty();  // not a file: the commit that a branch points to
    const std::string& name = options_.hub_cache ? entry.key : entry.path;
    if (!reference && !IsWanted(name, options_.include, options_.ignore)) continue;
    bare_endings_.Add(name);
    any_ = any_ || !reference;
    const bool folder = entry.path.ends_with('/');
    MUSTER_RETURN_IF_ERROR(Annotate(CheckEntryPath(entry.path), entry.key));
    if (folder && entry.size > 0) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: a '/' at its end makes it a folder, but it has {} bytes; leave it out with --ignore, or rename it",
          entry.key, entry.size));
    }
    ++result_.files;
    result_.bytes += entry.size;
    MUSTER_RETURN_IF_ERROR(paths_.Add(entry.path));
    archives_ += IsUnpacked(entry.path);
    MUSTER_ASSIGN_OR_RETURN(const bool kept, Keep(entry));
    if (kept) {
      ++result_.kept_files;
      continue;
    }
    if (!unwritable_.ok()) return Annotate(unwritable_, fmt::format("{} has to be brought in", entry.path));
    MUSTER_RETURN_IF_ERROR(CheckPlace(entry.path));
    if (folder) {
      files_.push_back({.path = entry.path, .verified = true, .staged = true});
      any_staged_ = true;
      continue;
    }
    if (options_.dry_run) {
      NotePlanned(entry);
      continue;
    }
    CountNeeded(entry);
    missing.push_back(std::move(entry));
  }
  if (!Writes()) return absl::OkStatus();
  if (CheckRoom(room_).ok()) {
    mover_->Add(missing);
    return absl::OkStatus();
  }
  // Wait for the end of the list: only then is it known which leftovers can go.
  waiting_.insert(waiting_.end(), std::make_move_iterator(missing.begin()), std::make_move_iterator(missing.end()));
  return CheckRoom(room_ + staging_->leftovers());
}

// Reports an obstacle at the place of an entry before anything is fetched.
Status Initialize::Impl::CheckPlace(const std::string& path) {
  if (!staging_) return absl::OkStatus();
  if (!IsUnpacked(path)) return staging_->CheckPath(path);
  const size_t slash = path.rfind('/');  // members go to the archive's folder
  return slash == std::string::npos ? absl::OkStatus() : staging_->CheckPath(path.substr(0, slash + 1));
}

// Keeps an entry that an earlier run has brought in this very version. False: there is none.
StatusOr<bool> Initialize::Impl::Keep(const Entry& entry) {
  const auto kept = before_.Keep(entry);
  for (const ManifestFile& file : kept) {
    if (!file.archive.empty()) MUSTER_RETURN_IF_ERROR(paths_.Add(file.path));
    result_.unverified_files += file.archive.empty() && !file.verified && !entry.content;
  }
  return !kept.empty();
}

void Initialize::Impl::NotePlanned(const Entry& entry) {
  const Planned planned{entry.path, entry.size, StagedBytes(options_.target, source_.uri, entry)};
  ++result_.planned_files;
  result_.planned_bytes += planned.bytes - planned.staged_bytes;
  events_.planned(planned);
}

// Adds the disk space that the entry needs, minus what an earlier start or another commit has already.
void Initialize::Impl::CountNeeded(const Entry& entry) {
  const std::string name = Staging::NameOf(source_.uri, entry);
  if (options_.hub_cache && LinkFromBefore(entry, name)) return;
  const bool shares = opened_.provider == nullptr && ComesWithoutRoom(*staging_, entry, options_.hard_links);
  needed_.Add(shares ? 0 : entry.size, staging_->Held(name));
}

// In a hub cache the same content has another path at another commit. It becomes a hard link to the one file, as in the
// hub's client. False: the content must be fetched.
bool Initialize::Impl::LinkFromBefore(const Entry& entry, const std::string& name) {
  if (entry.content || staging_->IsWhole(name)) return false;
  const auto path = before_.PathOf(entry.version);
  return path && staging_->AdoptWhole(name, fmt::format("{}/{}", options_.target, *path)).ok();
}

void Initialize::Impl::Listed(Status status) {
  if (ended_) return;
  if (status.ok() && options_.extract && archives_ == 0) {
    events_.say(
        fmt::format("--extract: no file of {} is an archive by its name (.tar, .tar.gz, .tgz, .tar.zst, .tzst, "
                    ".zip); they are brought in as they are",
                    source_.uri));
  }
  for (const std::string& text : bare_endings_.Texts()) events_.say(text);
  if (status.ok() && !options_.dry_run) status = CheckList();
  if (!status.ok() || !Writes()) return asio::post(loop_, [this, status] { End(status); });
  if (!waiting_.empty()) mover_->Add(std::exchange(waiting_, {}));
  mover_->EndOfList();
}

Status Initialize::Impl::CheckList() {
  if (!any_) {
    return absl::NotFoundError(fmt::format("{}: nothing in it is wanted; check --include and --ignore", source_.uri));
  }
  if (Writes()) {
    room_ = room_ + staging_->DropLeftovers();
    return CheckRoom(room_);
  }
  result_.unchanged = NothingHasChanged();
  return result_.unchanged
             ? absl::OkStatus()
             : Annotate(unwritable_,
                        "the source has fewer files than before, so that the manifest has to be rewritten");
}

void Initialize::Impl::Moved(MovedFile file) {
  result_.unverified_files += !file.verified && !file.entry.content;
  ManifestFile whole;
  whole.path = file.entry.path;
  whole.size = file.entry.size;
  whole.hash = file.hash;
  whole.verified = file.verified;
  whole.version = file.entry.version;
  whole.unpacked = IsUnpacked(whole.path);
  const bool unpacked = whole.unpacked;
  whole.staged = !unpacked;
  any_staged_ = any_staged_ || whole.staged;
  files_.push_back(whole);
  if (unpacked) unpackers_->Add(std::move(file));
}

Status Initialize::Impl::TakeUnpacked(const MovedFile& archive, StatusOr<Unpacked> unpacked) {
  MUSTER_RETURN_IF_ERROR(unpacked.status());
  for (MovedFile& file : unpacked->files) {
    MUSTER_RETURN_IF_ERROR(Annotate(paths_.Add(file.entry.path), archive.entry.path));
    result_.unpacked_files += !file.name.empty();
    ManifestFile whole;
    whole.path = file.entry.path;
    whole.size = file.entry.size;
    whole.hash = std::move(file.hash);
    whole.version = std::move(file.entry.version);
    whole.archive = archive.entry.path;
    whole.staged = any_staged_ = true;
    files_.push_back(whole);
  }
  result_.unpacked_bytes += unpacked->bytes;
  return absl::OkStatus();
}

void Initialize::Impl::Transferred(Status status) {
  if (ended_) return;
  if (!status.ok()) return End(std::move(status));
  transferred_ = true;
  PublishIfWhole();
}

void Initialize::Impl::PublishIfWhole() {
  if (!transferred_ || (unpackers_ && !unpackers_->idle())) return;
  if (NothingHasChanged()) {
    result_.unchanged = true;
    return End(absl::OkStatus());
  }
  // The sync may take minutes; meanwhile the lease beats on the loop.
  auto synced = std::make_shared<Status>();
  auto strand = pool_->NewStrand();
  pool_->Run(
      strand, [this, synced] { *synced = staging_->Sync(); },
      [this, synced] {
        if (!ended_) End(synced->ok() ? Publish() : *synced);
      });
}

// If another process took the lease and moved files away, the error is not a fault of the disk: a new start can
// continue.
Status Initialize::Impl::WhoseFault(Status status) {
  if (status.ok() || lease_->StillHeld().value_or(true)) return status;
  return absl::UnavailableError(
      fmt::format("another initializer has taken {} over while this one published", options_.target));
}

Status Initialize::Impl::Publish() {
  Manifest manifest;
  manifest.source = source_.uri;
  manifest.version = opened_.catalogue->version();
  manifest.endpoint = opened_.catalogue->endpoint();
  manifest.selection = SelectionOf(options_);
  manifest.tool = fmt::format("muster {} ({})", Version(), Commit());
  manifest.completed_unix_ms = UnixMillis();
  paths_ = {};  // frees memory
  before_.TakeKept(&files_);
  files_.Sort();  // several archives may contain the same folder
  manifest.files = std::move(files_);
  MUSTER_ASSIGN_OR_RETURN(const bool held, lease_->StillHeld());
  if (!held) {
    return absl::UnavailableError(
        fmt::format("another initializer has taken {} over; nothing was published by this one", options_.target));
  }
  std::vector<std::string> staying;  // files of other commits are meant to stay in a hub cache
  if (!options_.hub_cache) staying = before_.NotAmong(manifest.files);
  MUSTER_RETURN_IF_ERROR(WhoseFault(initializers::Publish(*staging_, options_.target, std::move(manifest),
                                                          options_.then, [this] { return lease_->StayHeld(); })));
  if (!staying.empty()) events_.say(StayingText(staying));
  return absl::OkStatus();
}

void Initialize::Impl::End(Status status) {
  if (ended_) return;
  result_ = so_far();
  ended_ = true;
  if (unpackers_) unpackers_->Stop();
  listing_.reset();
  mover_.reset();
  if (status.ok() && result_.unchanged && staging_) staging_->Clear();
  result_.then_due = !options_.dry_run && ThenIsDue();  // the lease is held until the command has run
  result_.seconds = Seconds();
  events_.end(status.ok() ? StatusOr<InitializeResult>(result_)
                          : WithPlaceOfPatterns(WithUser(std::move(status)), source_.uri));
}

InitializeResult Initialize::Impl::so_far() const {
  InitializeResult so_far = result_;
  if (mover_) so_far.counts = mover_->counts();
  if (!ended_) so_far.seconds = Seconds();
  return so_far;
}

Initialize::Initialize(asio::io_context& loop, InitializeOptions options, Environment environment, Events events)
    : impl_(std::make_unique<Impl>(loop, std::move(options), std::move(environment), std::move(events))) {}
Initialize::~Initialize() = default;
void Initialize::Begin() { impl_->Begin(); }
InitializeResult Initialize::so_far() const { return impl_->so_far(); }

}  // namespace muster::initializers
