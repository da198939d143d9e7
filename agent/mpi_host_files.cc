// SPDX-License-Identifier: Apache-2.0
#include "agent/mpi_host_files.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "agent/installation.h"
#include "base/descriptors.h"
#include "base/host_fs.h"
#include "base/temporary_folder.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr std::string_view kOpenMpiName = "hosts.openmpi";
constexpr std::string_view kHydraName = "hosts.hydra";
constexpr std::string_view kRshName = "muster-rsh";
constexpr std::string_view kReportsName = "reports";
constexpr std::string_view kNames[] = {kOpenMpiName, kHydraName, kRshName, kReportsName};
constexpr std::string_view kRemedy =
    "set MUSTER_MPI_HOSTS to the hosts (HOST slots=N, with commas between), to the path of a host file, or to none "
    "where the command names its hosts itself";

StatusOr<std::string> ReadWhole(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.ok()) return ErrnoStatus(errno, path);
  std::string text;
  for (;;) {
    char part[65536];
    ssize_t count = read(file.get(), part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, path);
    text.append(part, static_cast<size_t>(count));
    if (count == 0 || text.size() > kMostMpiHostText) return text;  // ParseMpiHosts says that it is too long
  }
}

Status WriteWhole(const std::string& path, std::string_view text) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.ok()) return ErrnoStatus(errno, path);
  while (!text.empty()) {
    ssize_t count = write(file.get(), text.data(), text.size());
    if (count < 0 && errno != EINTR) return ErrnoStatus(errno, path);
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
  }
  return file.Close() == 0 ? absl::OkStatus() : ErrnoStatus(errno, path);
}

MpiPlace PlaceWithoutFiles() {
  MpiPlace place;
  place.rsh = InstalledLink(kRshName);
  place.interface = MpiInterface();
  place.root = geteuid() == 0;
  return place;
}

// The hosts; empty if the command names them itself or the job has one node.
StatusOr<std::vector<MpiHost>> ReadHosts(const Environment& environment, int default_slots) {
  std::optional<MpiHostSource> source = FindMpiHosts(environment);
  if (!source) return std::vector<MpiHost>{};
  if (source->file.empty()) {
    auto hosts = ParseMpiHosts(source->text, default_slots);
    return hosts.ok() ? hosts : Annotate(hosts.status(), source->origin);
  }
  auto text = ReadWhole(source->file);
  if (!text.ok() && source->origin.empty() && absl::IsNotFound(text.status())) {
    auto nodes = FirstOf(environment, "PET_NNODES TRAINER_NNODES");
    if (nodes && nodes->text == "1") return std::vector<MpiHost>{};
    return absl::FailedPreconditionError(
        fmt::format("--wire=mpi: no setting lists the hosts, and there is no {}; {}", kMpiHostFile, kRemedy));
  }
  const std::string origin = source->origin.empty() ? "the host file" : source->origin;
  if (!text.ok()) {
    return absl::FailedPreconditionError(fmt::format("{}: {}; {}", origin, Message(text.status()), kRemedy));
  }
  auto hosts = ParseMpiHosts(*text, default_slots);
  if (hosts.ok()) return hosts;
  return absl::FailedPreconditionError(fmt::format("{}: {}: {}", origin, source->file, Message(hosts.status())));
}

}  // namespace

std::string MpiInterface() {
  std::string name;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return name;
  for (const ifaddrs* at = all; at != nullptr && name.empty(); at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    if ((at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0) name = at->ifa_name;
  }
  freeifaddrs(all);
  return name;
}

MpiPlace MpiWorkerPlace() { return PlaceWithoutFiles(); }

MpiHostFiles::MpiHostFiles(MpiHostFiles&& other) noexcept
    : folder_(std::exchange(other.folder_, "")), hosts_(std::move(other.hosts_)), place_(std::move(other.place_)) {}

MpiHostFiles& MpiHostFiles::operator=(MpiHostFiles&& other) noexcept {
  if (this != &other) {
    Remove();
    folder_ = std::exchange(other.folder_, "");
    hosts_ = std::move(other.hosts_);
    place_ = std::move(other.place_);
  }
  return *this;
}

MpiHostFiles::~MpiHostFiles() { Remove(); }

void MpiHostFiles::Remove() {
  if (folder_.empty()) return;
  for (std::string_view name : kNames) unlink(fmt::format("{}/{}", folder_, name).c_str());
  rmdir(folder_.c_str());
  folder_.clear();
}

StatusOr<MpiHostFiles> MpiHostFiles::Make(const Environment& environment, const std::string& other_folder) {
  MpiHostFiles files;
  files.place_ = PlaceWithoutFiles();
  MUSTER_ASSIGN_OR_RETURN(files.place_.slots, MpiSlots(environment));
  MUSTER_ASSIGN_OR_RETURN(files.hosts_, ReadHosts(environment, files.place_.slots.value_or(1)));
  if (files.hosts_.empty() && !files.place_.rsh.empty()) return files;
  std::vector<std::string> folders = TemporaryFolders(environment.Get("TMPDIR"));
  folders.insert(folders.end(), {other_folder, "/dev/shm"});
  std::vector<std::string> reasons;
  for (const std::string& above : folders) {
    if (above.empty()) continue;
    std::string folder = above + "/muster-mpi-XXXXXX";
    Status laid = mkdtemp(folder.data()) == nullptr ? ErrnoStatus(errno, above) : absl::OkStatus();
    if (laid.ok()) {
      files.folder_ = folder;
      laid = files.Lay();
    }
    if (laid.ok()) return files;
    files.Remove();
    reasons.emplace_back(Message(laid));
  }
  return absl::FailedPreconditionError(fmt::format(
      "--wire=mpi: cannot make a folder for the host files ({}); set TMPDIR to one that can be written, such as an "
      "emptyDir",
      Join(reasons, "; ")));
}

std::string MpiHostFiles::reports() const { return fmt::format("{}/{}", folder_, kReportsName); }

Status MpiHostFiles::Lay() {
  if (InstalledLink(kRshName).empty()) {
    place_.rsh = fmt::format("{}/{}", folder_, kRshName);
    if (symlink(OwnPath().c_str(), place_.rsh.c_str()) != 0) return ErrnoStatus(errno, place_.rsh);
  }
  if (hosts_.empty()) return absl::OkStatus();
  place_.open_mpi_hosts = fmt::format("{}/{}", folder_, kOpenMpiName);
  place_.hydra_hosts = fmt::format("{}/{}", folder_, kHydraName);
  place_.per_host = CommonSlots(hosts_);
  MUSTER_RETURN_IF_ERROR(WriteWhole(place_.open_mpi_hosts, OpenMpiHostFile(hosts_)));
  return WriteWhole(place_.hydra_hosts, HydraHostFile(hosts_));
}

}  // namespace muster::agent
