// SPDX-License-Identifier: Apache-2.0
#include "agent/report/attempt_history.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "agent/report/training_record.h"
#include "base/exit_codes.h"
#include "base/json_fields.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr int64_t kLatestUnixMillis = 253'402'300'799'999;  // the end of the year 9999
constexpr int64_t kMostOfAnything = 10'000'000;             // ranks, nodes, rounds
constexpr size_t kMostWorkersOfANode = 65'536;
constexpr int64_t kBiggest = int64_t{1} << 53;  // bytes, pids: exact in any JSON reader
constexpr double kLongestSeconds = 4e9;

int ReadCount(JsonFields& fields, const char* name) {
  return static_cast<int>(fields.Number(name, 0, kMostOfAnything).value_or(0));
}

std::optional<int64_t> ReadMoment(JsonFields& fields, const char* name) {
  return fields.Number(name, 0, kLatestUnixMillis);
}

Duration ReadSeconds(JsonFields& fields, const char* name) {
  const double seconds = fields.Real(name, 0, kLongestSeconds).value_or(0);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

StatusOr<JobResult> ReadJob(const Json& object) {
  if (!object.is_object()) return absl::InvalidArgumentError("'job' is not an object");
  JsonFields fields(object, "job: ");
  fields.Need({"exit_code", "class"});
  JobResult job;
  job.exit_code = static_cast<int>(fields.Number("exit_code", 0, 255).value_or(0));
  job.reason = fields.Text("reason");
  const auto exit_class = ParseExitClass(fields.Text("class"));
  if (!exit_class) fields.Wrong("class", "success, fatal or retryable");
  MUSTER_RETURN_IF_ERROR(fields.status());
  job.exit_class = *exit_class;
  return job;
}

Status ReadWorker(const Json& object, int local_rank, AttemptRecord& record) {
  std::string where = fmt::format("worker {}: ", local_rank);
  if (!object.is_object()) return absl::InvalidArgumentError(where + "it is not an object");
  JsonFields fields(object, std::move(where));
  auto pid = fields.Number("pid", 0, kBiggest);
  if (pid && record.pids.size() == static_cast<size_t>(local_rank)) record.pids.push_back(*pid);
  auto exit_code = fields.Number("exit_code", 0, 255);
  if (!exit_code) return fields.status();
  launcher::ExitRecord exit;
  exit.local_rank = local_rank;
  exit.pid = pid.value_or(0);
  exit.exit_code = static_cast<int>(*exit_code);
  exit.signal = ParseSignal(fields.Text("signal")).value_or(0);
  exit.core_dumped = fields.Flag("core_dumped");
  exit.oom_killed = fields.Flag("oom_killed");
  exit.after_stop = fields.Flag("after_stop");
  exit.max_rss_bytes = fields.Number("max_rss_bytes", 0, kBiggest).value_or(0);
  exit.cpu_time = ReadSeconds(fields, "cpu_seconds");
  exit.lived = ReadSeconds(fields, "lived_seconds");
  exit.ended_unix_millis = ReadMoment(fields, "ended_unix_ms").value_or(0);
  exit.error_file = fields.Text("error_file");
  exit.error_message = fields.Text("error_message");
  exit.stderr_tail = fields.Texts("stderr_tail");
  exit.stderr_reason = fields.Text("stderr_reason");
  // The worker was stopped because it hung: the hang is its failure, not our signal.
  if (std::string hang = fields.Text("hang"); !hang.empty()) {
    exit.exit_code = kExitHang;
    exit.signal = 0;
    exit.after_stop = false;
    exit.error_message = hang;
    auto place = fields.Number("hang_place", 0, kMostOfAnything).value_or(0);
    record.hangs.push_back({local_rank, std::move(hang), place});
  }
  record.exits.push_back(std::move(exit));
  return fields.status();
}

// Reads a whole regular file. Refuses a pipe or a device, since it would have to wait for it.
StatusOr<std::string> ReadRegularFile(const std::string& path, size_t limit) {
  int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "cannot be read");
  struct stat facts {};
  std::string text;
  Status status;
  if (fstat(fd, &facts) != 0) {
    status = ErrnoStatus(errno, "cannot be read");
  } else if (!S_ISREG(facts.st_mode)) {
    status = absl::InvalidArgumentError("is not a regular file");
  }
  while (status.ok()) {
    size_t before = text.size();
    text.resize(before + 65536);
    ssize_t n = read(fd, text.data() + before, 65536);
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && errno != EINTR) status = ErrnoStatus(errno, "cannot be read");
    if (n == 0) break;
    if (text.size() > limit) status = absl::InvalidArgumentError(fmt::format("is longer than {} bytes", limit));
  }
  close(fd);
  if (!status.ok()) return status;
  return text;
}

bool IsAttemptFolder(std::string_view name) {
  constexpr std::string_view kPrefix = "attempt_";
  return name.starts_with(kPrefix) && ParseInt(name.substr(kPrefix.size())).has_value();
}

class Search {
 public:
  explicit Search(const HistoryLimits& limits) : limits_(limits) {}

  Status Enter(const std::string& folder, int depth) {
    struct stat facts {};
    if (stat(folder.c_str(), &facts) != 0) return ErrnoStatus(errno, "cannot be read");
    if (!S_ISDIR(facts.st_mode)) return absl::InvalidArgumentError("is not a folder");
    if (!seen_.emplace(facts.st_dev, facts.st_ino).second) return absl::OkStatus();
    std::vector<std::string> folders;
    bool has_record = false;
    MUSTER_RETURN_IF_ERROR(List(folder, folders, has_record));
    if (has_record) {
      ReadOne(folder);
      return absl::OkStatus();
    }
    std::string_view name = std::string_view(folder).substr(folder.rfind('/') + 1);
    if (IsAttemptFolder(name) && std::none_of(folders.begin(), folders.end(), IsAttemptFolder)) {
      Problem(folder, "holds no attempt.json: its agent was killed before it could write it");
      return absl::OkStatus();
    }
    if (depth == limits_.depth && !folders.empty()) {
      Problem(folder, "lies too deep: not searched further");
      return absl::OkStatus();
    }
    for (const std::string& inner : folders) {
      if (full_) break;
      const std::string path = fmt::format("{}/{}", folder, inner);
      if (Status status = Enter(path, depth + 1); !status.ok()) {
        Problem(path, std::string(Message(status)));
      }
    }
    return absl::OkStatus();
  }

  AttemptHistory history;

 private:
  void Problem(std::string path, std::string what) { history.problems.push_back({std::move(path), std::move(what)}); }

  Status List(const std::string& folder, std::vector<std::string>& folders, bool& has_record) {
    DIR* entries = opendir(folder.c_str());
    if (entries == nullptr) return ErrnoStatus(errno, "cannot be read");
    while (const dirent* entry = readdir(entries)) {
      std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (name == "attempt.json") has_record = true;
      if (entry->d_type == DT_DIR || (entry->d_type != DT_REG && LeadsToFolder(folder, entry->d_name))) {
        folders.emplace_back(name);
      }
    }
    closedir(entries);
    if (folders_ += folders.size(); folders_ > limits_.folders && !full_) {
      full_ = true;
      Problem(folder, fmt::format("more than {} folders: those after this one were not read", limits_.folders));
    }
    std::sort(folders.begin(), folders.end());
    return absl::OkStatus();
  }

  static bool LeadsToFolder(const std::string& folder, const char* name) {
    struct stat facts {};
    return stat((folder + "/" + name).c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
  }

  void ReadOne(const std::string& folder) {
    std::string path = folder + "/attempt.json";
    if (history.files.size() >= limits_.files) {
      if (!full_) Problem(path, fmt::format("more than {} attempts: from this one on none was read", limits_.files));
      full_ = true;
      return;
    }
    auto text = ReadRegularFile(path, limits_.file_bytes);
    if (!text.ok()) return Problem(std::move(path), std::string(Message(text.status())));
    auto record = ParseAttemptRecord(*text);
    if (!record.ok()) return Problem(std::move(path), std::string(Message(record.status())));
    for (launcher::ExitRecord& exit : record->exits) {
      DropText(exit);
      AddTraceback(folder, exit);
    }
    history.files.push_back({folder, *std::move(record)});
  }

  // Drops texts beyond the limit: the last lines of thousands of workers would be gigabytes.
  void DropText(launcher::ExitRecord& exit) {
    size_t size = exit.error_message.size() + exit.stderr_reason.size();
    for (const std::string& line : exit.stderr_tail) size += line.size();
    if (exit.exit_code != 0 && !exit.after_stop && text_bytes_ + size <= limits_.text_bytes) {
      text_bytes_ += size;
      return;
    }
    exit.error_message.clear();
    exit.stderr_tail.clear();
    exit.stderr_reason.clear();
  }

  // Reads the file beside attempt.json: the path in the record is the one that the agent saw in its own pod.
  void AddTraceback(const std::string& folder, launcher::ExitRecord& exit) {
    if (exit.error_file.empty() || exit.exit_code == 0 || exit.after_stop || error_files_ >= limits_.error_files)
      return;
    ++error_files_;
    auto text = ReadRegularFile(fmt::format("{}/{}/error.json", folder, exit.local_rank), 1 << 20);
    if (!text.ok()) return;
    if (auto error = launcher::ParseErrorFile(*text); error.ok()) exit.error_callstack = error->callstack;
  }

  const HistoryLimits& limits_;
  std::set<std::pair<dev_t, ino_t>> seen_;
  size_t folders_ = 0;
  size_t error_files_ = 0;
  size_t text_bytes_ = 0;
  bool full_ = false;
};

}  // namespace

StatusOr<AttemptRecord> ParseAttemptRecord(std::string_view text) {
  if (Strip(text).empty()) return absl::InvalidArgumentError("is empty");
  const Json document = ReadJsonTop(text, kFieldLevels);  // a newer version may nest fields that this one does not read
  if (document.is_discarded()) return absl::InvalidArgumentError("is not JSON, or was cut off");
  if (!document.is_object()) return absl::InvalidArgumentError("is not a JSON object");
  JsonFields fields(document, "");
  fields.Need({"run_id", "node", "round", "started_unix_ms"});
  AttemptRecord record;
  rendezvous::Assignment& assignment = record.assignment;
  record.run_id = fields.Text("run_id");
  record.attempt = ReadCount(fields, "attempt");
  record.version = fields.Text("muster");
  assignment.seat.node.name = fields.Text("node");
  assignment.seat.node.host = fields.Text("host");
  assignment.id.number = fields.Number("round", -1, kMostOfAnything).value_or(-1);
  assignment.id.term = static_cast<uint64_t>(fields.Number("term", 0, kBiggest).value_or(0));
  assignment.node_rank = ReadCount(fields, "node_rank");
  assignment.node_count = ReadCount(fields, "node_count");
  assignment.world_size = ReadCount(fields, "world_size");
  assignment.seat.first_rank = ReadCount(fields, "first_rank");
  assignment.restart_count = ReadCount(fields, "restart_count");
  assignment.max_restarts = ReadCount(fields, "max_restarts");
  std::string master = fields.Text("master");
  size_t colon = std::min(master.rfind(':'), master.size());
  assignment.master_host = master.substr(0, colon);
  if (colon < master.size()) {
    assignment.master_port =
        static_cast<int>(ParseInt(std::string_view(master).substr(colon + 1)).value_or(0) & 0xffff);
  }
  record.start_reason = fields.Text("start_reason");
  record.end_reason = fields.Text("reason");
  record.started_unix_ms = ReadMoment(fields, "started_unix_ms").value_or(0);
  record.workers_started_unix_ms = ReadMoment(fields, "workers_started_unix_ms");
  record.standby_workers = ReadCount(fields, "standby_workers");
  record.first_output_seconds = fields.Real("first_output_seconds", 0, kLongestSeconds);
  record.stopping_unix_ms = ReadMoment(fields, "stopping_unix_ms");
  record.ended_unix_ms = ReadMoment(fields, "ended_unix_ms");
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (const Json* job = fields.Find("job")) {
    MUSTER_ASSIGN_OR_RETURN(record.job, ReadJob(*job));
  }
  const Json* workers = fields.Find("workers");
  if (workers != nullptr && !workers->is_array()) return absl::InvalidArgumentError("'workers' is not a list");
  if (workers != nullptr && workers->size() > kMostWorkersOfANode) {
    return absl::InvalidArgumentError("'workers' is too long");
  }
  if (workers != nullptr) {
    int local_rank = 0;  // the place in the list; the field local_rank repeats it
    for (const Json& worker : *workers) MUSTER_RETURN_IF_ERROR(ReadWorker(worker, local_rank++, record));
    std::stable_sort(record.hangs.begin(), record.hangs.end(),
                     [](const auto& a, const auto& b) { return a.place < b.place; });
  }
  MUSTER_RETURN_IF_ERROR(ReadTraining(fields, kMostWorkersOfANode, record));
  assignment.seat.node.slots = workers == nullptr ? 0 : static_cast<int>(workers->size());
  assignment.reason = record.start_reason;
  return record;
}

StatusOr<AttemptHistory> ReadAttemptHistory(const std::string& folder, const HistoryLimits& limits) {
  std::string start = folder;
  while (start.size() > 1 && start.ends_with('/')) start.pop_back();
  Search search(limits);
  MUSTER_RETURN_IF_ERROR(Annotate(search.Enter(start, 0), start));
  return std::move(search.history);
}

}  // namespace muster::agent
