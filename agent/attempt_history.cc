#include "agent/attempt_history.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>

#include "base/exit_codes.h"
#include "base/text.h"

namespace muster::agent {
namespace {

using nlohmann::json;

constexpr int64_t kLatestUnixMillis = 253'402'300'799'999;  // the end of the year 9999
constexpr int64_t kMostOfAnything = 10'000'000;             // ranks, nodes, rounds
constexpr size_t kMostWorkersOfANode = 65'536;
constexpr int64_t kBiggest = int64_t{1} << 53;  // bytes, pids: exact in any JSON reader
constexpr double kLongestSeconds = 4e9;

// Reads the fields of one object and keeps the first complaint.
class Fields {
 public:
  Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  std::string Text(const char* key, bool required = false) {
    const json* value = Find(key, required);
    if (value == nullptr) return "";
    if (!value->is_string()) return Complain(key, "is no text"), "";
    return value->get<std::string>();
  }

  std::optional<int64_t> Number(const char* key, int64_t low, int64_t high, bool required = false) {
    const json* value = Find(key, required);
    if (value == nullptr) return std::nullopt;
    if (value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(high)) {
      return Complain(key, "is out of range"), std::nullopt;
    }
    if (!value->is_number_integer()) return Complain(key, "is no whole number"), std::nullopt;
    auto number = value->get<int64_t>();
    if (number < low || number > high) return Complain(key, "is out of range"), std::nullopt;
    return number;
  }

  int Count(const char* key) { return static_cast<int>(Number(key, 0, kMostOfAnything).value_or(0)); }
  std::optional<int64_t> Moment(const char* key, bool required = false) {
    return Number(key, 0, kLatestUnixMillis, required);
  }

  Duration Seconds(const char* key) {
    const json* value = Find(key, false);
    if (value == nullptr) return {};
    if (!value->is_number()) return Complain(key, "is no number"), Duration{};
    auto seconds = value->get<double>();
    if (!(seconds >= 0 && seconds <= kLongestSeconds)) return Complain(key, "is out of range"), Duration{};
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }

  bool Flag(const char* key) {
    const json* value = Find(key, false);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return Complain(key, "is neither true nor false"), false;
    return value->get<bool>();
  }

  std::vector<std::string> Lines(const char* key) {
    std::vector<std::string> lines;
    const json* value = Find(key, false);
    if (value == nullptr) return lines;
    if (!value->is_array()) return Complain(key, "is no list"), lines;
    for (const json& line : *value) {
      if (!line.is_string()) return Complain(key, "holds more than texts"), lines;
      lines.push_back(line.get<std::string>());
    }
    return lines;
  }

  // Absent and null are the same.
  const json* Find(const char* key, bool required) {
    auto found = object_.find(key);
    if (found != object_.end() && !found->is_null()) return &*found;
    if (required) Complain(key, "is missing");
    return nullptr;
  }

  void Complain(std::string_view key, std::string_view what) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(fmt::format("{}\"{}\" {}", where_, key, what));
  }

  const Status& status() const { return status_; }

 private:
  const json& object_;
  std::string where_;
  Status status_;
};

// "SIGKILL" or "signal 99".
int SignalNumber(std::string_view name) {
  if (name.starts_with("signal ")) name.remove_prefix(std::string_view("signal ").size());
  auto signal = ParseSignal(name);
  return signal.ok() ? *signal : 0;
}

StatusOr<JobResult> ReadJob(const json& object) {
  if (!object.is_object()) return absl::InvalidArgumentError("\"job\" is no object");
  Fields fields(object, "job: ");
  JobResult job;
  job.exit_code = static_cast<int>(fields.Number("exit_code", 0, 255, true).value_or(0));
  job.reason = fields.Text("reason");
  std::string name = fields.Text("class", true);
  MUSTER_RETURN_IF_ERROR(fields.status());
  for (ExitClass one : {ExitClass::kSuccess, ExitClass::kFatal, ExitClass::kRetryable}) {
    if (name != ExitClassName(one)) continue;
    job.exit_class = one;
    return job;
  }
  return absl::InvalidArgumentError("job: \"class\" is none of success, fatal, retryable");
}

Status ReadWorker(const json& object, int local_rank, AttemptRecord& record) {
  std::string where = fmt::format("worker {}: ", local_rank);
  if (!object.is_object()) return absl::InvalidArgumentError(where + "it is no object");
  Fields fields(object, std::move(where));
  auto pid = fields.Number("pid", 0, kBiggest);
  if (pid && record.pids.size() == static_cast<size_t>(local_rank)) record.pids.push_back(*pid);
  auto exit_code = fields.Number("exit_code", 0, 255);
  if (!exit_code) return fields.status();
  launcher::ExitRecord exit;
  exit.local_rank = local_rank;
  exit.pid = pid.value_or(0);
  exit.exit_code = static_cast<int>(*exit_code);
  exit.signal = SignalNumber(fields.Text("signal"));
  exit.core_dumped = fields.Flag("core_dumped");
  exit.oom_killed = fields.Flag("oom_killed");
  exit.after_stop = fields.Flag("after_stop");
  exit.max_rss_bytes = fields.Number("max_rss_bytes", 0, kBiggest).value_or(0);
  exit.cpu_time = fields.Seconds("cpu_seconds");
  exit.lived = fields.Seconds("lived_seconds");
  exit.ended_unix_millis = fields.Moment("ended_unix_ms").value_or(0);
  exit.error_file = fields.Text("error_file");
  exit.error_message = fields.Text("error_message");
  exit.stderr_tail = fields.Lines("stderr_tail");
  // It was stopped because it hung: that is what it failed by, not our signal.
  if (std::string hang = fields.Text("hang"); !hang.empty()) {
    exit.exit_code = kExitHang;
    exit.signal = 0;
    exit.after_stop = false;
    exit.error_message = hang;
    auto place = fields.Number("hang_place", 0, kMostOfAnything).value_or(0);
    auto behind =
        std::find_if(record.hangs.begin(), record.hangs.end(), [&](auto& other) { return other.place > place; });
    record.hangs.insert(behind, {local_rank, std::move(hang), place});
  }
  record.exits.push_back(std::move(exit));
  return fields.status();
}

// The whole of a regular file; a pipe or a device under its name is refused, not waited for.
StatusOr<std::string> ReadRegularFile(const std::string& path, size_t limit) {
  int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "cannot be read");
  struct stat facts {};
  std::string text;
  Status status;
  if (fstat(fd, &facts) != 0) {
    status = ErrnoStatus(errno, "cannot be read");
  } else if (!S_ISREG(facts.st_mode)) {
    status = absl::InvalidArgumentError("is no regular file");
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
    if (!S_ISDIR(facts.st_mode)) return absl::InvalidArgumentError("is no folder");
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
      if (Status status = Enter(folder + "/" + inner, depth + 1); !status.ok()) {
        Problem(folder + "/" + inner, std::string(Message(status)));
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

  // Thousands of workers with their last lines would be gigabytes.
  void DropText(launcher::ExitRecord& exit) {
    size_t size = exit.error_message.size();
    for (const std::string& line : exit.stderr_tail) size += line.size();
    if (exit.exit_code != 0 && !exit.after_stop && text_bytes_ + size <= limits_.text_bytes) {
      text_bytes_ += size;
      return;
    }
    exit.error_message.clear();
    exit.stderr_tail.clear();
  }

  // From the file beside attempt.json: the path in it is the one the agent saw, in its own pod.
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
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return absl::InvalidArgumentError("is no JSON, or was cut off");
  if (!document.is_object()) return absl::InvalidArgumentError("is no JSON object");
  Fields fields(document, "");
  AttemptRecord record;
  rendezvous::Assignment& assignment = record.assignment;
  record.run_id = fields.Text("run_id", true);
  record.attempt = fields.Count("attempt");
  record.version = fields.Text("muster");
  assignment.seat.node.name = fields.Text("node", true);
  assignment.seat.node.host = fields.Text("host");
  assignment.id.number = fields.Number("round", -1, kMostOfAnything, true).value_or(-1);
  assignment.id.term = static_cast<uint64_t>(fields.Number("term", 0, kBiggest).value_or(0));
  assignment.node_rank = fields.Count("node_rank");
  assignment.node_count = fields.Count("node_count");
  assignment.world_size = fields.Count("world_size");
  assignment.seat.first_rank = fields.Count("first_rank");
  assignment.restart_count = fields.Count("restart_count");
  assignment.max_restarts = fields.Count("max_restarts");
  std::string master = fields.Text("master");
  size_t colon = std::min(master.rfind(':'), master.size());
  assignment.master_host = master.substr(0, colon);
  if (colon < master.size()) {
    assignment.master_port =
        static_cast<int>(ParseInt(std::string_view(master).substr(colon + 1)).value_or(0) & 0xffff);
  }
  record.start_reason = fields.Text("start_reason");
  record.end_reason = fields.Text("reason");
  record.started_unix_ms = fields.Moment("started_unix_ms", true).value_or(0);
  record.workers_started_unix_ms = fields.Moment("workers_started_unix_ms");
  record.stopping_unix_ms = fields.Moment("stopping_unix_ms");
  record.ended_unix_ms = fields.Moment("ended_unix_ms");
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (const json* job = fields.Find("job", false)) {
    MUSTER_ASSIGN_OR_RETURN(record.job, ReadJob(*job));
  }
  const json* workers = fields.Find("workers", false);
  if (workers != nullptr && !workers->is_array()) return absl::InvalidArgumentError("\"workers\" is no list");
  if (workers != nullptr && workers->size() > kMostWorkersOfANode) {
    return absl::InvalidArgumentError("\"workers\" is too long");
  }
  if (workers != nullptr) {
    int local_rank = 0;  // the place in the list: what local_rank says again
    for (const json& worker : *workers) MUSTER_RETURN_IF_ERROR(ReadWorker(worker, local_rank++, record));
  }
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
