// SPDX-License-Identifier: Apache-2.0
// muster-initializer {dataset|model} [URI] [--to DIR]: turns flags and environment into one run and an exit code.
#include <malloc.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdlib>
#include <functional>

#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/host_facts.h"
#include "base/json_fields.h"
#include "base/kernel_calls.h"
#include "base/log.h"
#include "base/termination_message.h"
#include "base/text.h"
#include "base/version.h"
#include "initializers/facts/failure.h"
#include "initializers/initialize.h"
#include "initializers/progress_view.h"
#include "initializers/stores/hub.h"
#include "initializers/target/after_publish.h"
#include "usage/app_command.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

// Splits a comma-separated list; KServe also writes a JSON array.
std::vector<std::string> Patterns(const std::string& list) {
  std::vector<std::string> patterns;
  if (const auto json = ReadJson(list, 1); json.ok() && json->is_array()) {
    for (const Json& part : *json) {
      if (part.is_string()) patterns.push_back(part);
    }
    return patterns;
  }
  for (std::string_view part : Split(list, ',')) {
    if (!Strip(part).empty()) patterns.emplace_back(Strip(part));
  }
  return patterns;
}

Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// At least four: while some threads hash, others wait for the disk.
int Threads(int cores) { return std::clamp(cores, 4, 8); }
// They also wait for the disk: with four, a disk that takes eight parallel writes was idle a tenth of the time.
constexpr int kReceivers = 8;

struct ProgramOptions {
  InitializeOptions run;
  bool json = false;
  double deadline = 0;  // seconds; 0: none
  std::string termination_log = kTerminationLog;
};

constexpr Duration kThenGrace = std::chrono::seconds(10);

void LeaveLastWord(const std::string& path, const Status& status, const std::optional<InitializeResult>& run,
                   int code) {
  Status written = WriteTerminationMessage(path, TerminationLine(status, run, code));
  if (!written.ok() && !absl::IsNotFound(written)) log::Warning(Message(written));
}

class Program {
 public:
  explicit Program(ProgramOptions options) : options_(std::move(options)), progress_(options_.json) {}

  int Run() {
    AwaitSignal();
    if (options_.deadline > 0) {
      deadline_.expires_after(FromSeconds(options_.deadline));
      deadline_.async_wait([this](boost::system::error_code error) {
        if (error) return;
        if (then_) return StopThen();
        End(absl::DeadlineExceededError(
            fmt::format("not complete after {} s (--deadline); what is there is kept, the next start goes on from it",
                        options_.deadline)));
      });
    }
    Initialize::Events events;
    events.say = [this](const std::string& text) { progress_.Say(text); };
    events.planned = [this](const Initialize::Planned& file) { progress_.Plan(file); };
    events.end = [this](StatusOr<InitializeResult> result) { End(std::move(result)); };
    run_ = std::make_unique<Initialize>(loop_, options_.run, Environment::OfProcess(), std::move(events));
    run_->Begin();
    Tick();
    loop_.run();
    const InitializeResult run = run_->so_far();
    run_.reset();
    LeaveLastWord(options_.termination_log, result_.status(), run, code_);
    return code_;
  }

 private:
  void AwaitSignal() {
    signals_.async_wait([this](boost::system::error_code error, int signal) {
      if (error) return;
      stopped_by_ = signal;
      if (then_) {
        then_->Signal(signal);  // we end when it has ended
        return AwaitSignal();
      }
      const std::string text =
          fmt::format("{}: stopping; what is there is kept, the next start goes on from it", SignalName(signal));
      progress_.Say(text);
      result_ = absl::CancelledError(absl::string_view(text.data(), text.size()));
      code_ = 128 + signal;
      loop_.stop();
    });
  }
  void Tick() {
    timer_.expires_after(progress_.interval());
    timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      progress_.Show(run_->so_far().counts, MonotonicClock::now());
      Tick();
    });
  }
  void End(StatusOr<InitializeResult> result) {
    timer_.cancel();
    result_ = std::move(result);
    if (result_.ok()) {
      progress_.Done(*result_, options_.run.dry_run);
      if (result_->then_due) return Then();
    } else {
      code_ = ExitCodeOf(result_.status());
      progress_.Failed(result_.status(), code_);
    }
    loop_.stop();
  }
  void Then() {
    then_ = std::make_unique<AfterPublish>(loop_, options_.run.target, [this](StatusOr<int> code) {
      code_ = code.ok() ? *code : kExitNotExecutable;
      if (code_ != 0 && late_) {
        result_ = absl::DeadlineExceededError(fmt::format(
            "--then '{}' was not done after {} s (--deadline); the data is in place, the next start runs it "
            "again",
            options_.run.then, options_.deadline));
        code_ = ExitCodeOf(result_.status());
        progress_.Failed(result_.status(), code_);
      } else if (code_ != 0) {
        std::string text = code.ok()
                               ? fmt::format("--then '{}': {}; the data is in place, the next start runs it again",
                                             options_.run.then, DescribeExit(*code))
                               : std::string(Message(code.status()));
        result_ = absl::FailedPreconditionError(absl::string_view(text.data(), text.size()));
        progress_.Failed(result_.status(), code_);
      }
      if (stopped_by_) code_ = 128 + *stopped_by_;
      loop_.stop();
    });
    then_->Run(options_.run.then);
  }
  // Stops the command and the processes that it has started; kills them after kThenGrace.
  void StopThen() {
    late_ = true;
    then_->Signal(SIGTERM);
    deadline_.expires_after(kThenGrace);
    deadline_.async_wait([this](boost::system::error_code error) {
      if (!error) then_->Signal(SIGKILL);
    });
  }

  const ProgramOptions options_;
  ProgressView progress_;
  asio::io_context loop_{1};
  asio::signal_set signals_{loop_, SIGINT, SIGTERM};
  asio::steady_timer timer_{loop_}, deadline_{loop_};
  std::unique_ptr<Initialize> run_;
  std::unique_ptr<AfterPublish> then_;
  StatusOr<InitializeResult> result_ = absl::UnknownError("it has not ended");
  std::optional<int> stopped_by_;
  bool late_ = false;  // the command was stopped at the deadline
  int code_ = 0;
};

// Read by blocking threads. A second signal ends the process at once.
std::atomic<bool> stop_checking = false;

int Verify(const std::string& folder, bool json) {
  for (int signal : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    action.sa_handler = [](int) { stop_checking = true; };
    action.sa_flags = SA_RESETHAND;
    sigaction(signal, &action, nullptr);
  }
  auto check = VerifyFolder(folder, Threads(ContainerCpus(ReadHostFacts())), stop_checking);
  if (!check.ok()) {
    log::Error(Message(check.status()));
    return stop_checking ? kExitStopped : 1;
  }
  ShowCheck(*check, folder, json);
  return check->wrong == 0 ? 0 : 1;
}

// Flags that must be parsed before they become options of the engine.
struct Words {
  std::string verify = "full";
  std::string include, ignore;
  double patience = 300, stall = 20, lease_silence = 30;  // seconds
};

// Flags that decide how the result is reported.
void AddTellingFlags(CLI::App* command, ProgramOptions* program) {
  command->add_flag("--json", program->json, "events as JSON lines on stdout");
  command
      ->add_option("--termination-log", program->termination_log,
                   "where the pod's termination message goes, if it is there")
      ->type_name("FILE")
      ->envname("MUSTER_TERMINATION_LOG");
}

void AddFlags(CLI::App* command, ProgramOptions* program, Words* words, std::string_view target) {
  InitializeOptions& run = program->run;
  command->option_defaults()->take_last();  // if a flag is given twice
  command
      ->add_option("uri", run.uri, "s3://BUCKET/KEY, gs://, hf://, pvc://CLAIM/PATH, file:///PATH, https://HOST/FILE")
      ->envname("STORAGE_URI");
  command->add_option("--to", run.target, fmt::format("target; default {}", target))->type_name("DIR");
  const Environment environment = Environment::OfProcess();
  words->include = environment.Get("STORAGE_ALLOW_PATTERNS").value_or("");  // KServe's
  words->ignore = environment.Get("STORAGE_IGNORE_PATTERNS").value_or("");
  command->add_option("--include", words->include,
                      "only files that match one of these patterns, with commas between; else STORAGE_ALLOW_PATTERNS");
  command
      ->add_option("--ignore", words->ignore,
                   "no file that matches one of these; wins over --include; else STORAGE_IGNORE_PATTERNS")
      ->envname("IGNORE_PATTERNS");
  command->add_option("--verify", words->verify, "full | size | none: what is checked of every file")
      ->check(CLI::IsMember({"full", "size", "none"}));
  command->add_option("--version-id", run.version_id,
                      "this version of a single S3 object, or this generation of a single GCS object");
  command
      ->add_option("--claim", run.claims,
                   "NAME=DIR: where a pvc:// claim is mounted; else MUSTER_CLAIMS=NAME=DIR,..., else /mnt/pvc/NAME")
      ->type_name("NAME=DIR")
      ->take_all();
  command->add_flag("--hf-cache", run.hub_cache,
                    "lay an hf:// repository as the hub's client keeps it, in the cache that --to names; default "
                    "HF_HUB_CACHE, else HF_HOME/hub");
  command->add_flag("--hard-link", run.hard_links, "hard links to the files of a folder instead of copies");
  command->add_flag("--extract", run.extract, "unpack archives (tar, tar.gz, tar.zst, zip) in place of keeping them");
  command
      ->add_option("--extract-ratio", run.unpack.ratio,
                   "refuse an archive that unpacks to more than so many times its size, and to more than 1 GiB; "
                   "default 100")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32));
  command->add_option("--extract-members", run.unpack.members,
                      "refuse an archive with more members than this; default 10000000");
  command
      ->add_option("--then", run.then,
                   "a command for sh, run when everything is in place; MUSTER_TARGET names the folder")
      ->type_name("COMMAND");
  command->add_option("--ca-bundle", run.http.ca_bundle, "certificates to trust, a file or a folder of them")
      ->type_name("FILE");
  command->add_option("--deadline", program->deadline, "give up after so many seconds, whatever is going on; 0: never")
      ->check(CLI::Range(0.0, 1e9));
  command->add_option("--patience", words->patience, "give up after so many seconds without any progress; default 300")
      ->check(CLI::Range(0.0, 1e6));
  command
      ->add_option("--stall-timeout", words->stall,
                   "replace a connection that is slower than 32 KiB/s for so many seconds; default 20")
      ->check(CLI::Range(1.0, 1e6));
  command
      ->add_option("--lease-timeout", words->lease_silence,
                   "take over from another initializer of the same folder that has been silent for so many seconds; "
                   "default 30")
      ->check(CLI::Range(10.0, 1e6));
  command->add_flag("--http2", run.http.http2, "use HTTP/2 over https if the server has it; default HTTP/1.1");
  command->add_flag("--anonymous", run.anonymous, "send no credentials");
  command->add_flag("--allow-html", run.allow_html,
                    "accept a web page from https:// also under another name than *.html; without the flag it counts "
                    "as a login page");
  command->add_flag("--dry-run", run.dry_run, "say what would be moved, and move nothing");
  AddTellingFlags(command, program);
}

void Apply(const Words& words, InitializeOptions* run) {
  run->include = Patterns(words.include);
  run->ignore = Patterns(words.ignore);
  run->transfer.verify = words.verify == "full";
  run->transfer.retry.patience = FromSeconds(words.patience);
  run->transfer.limits.silence = FromSeconds(words.stall);
  run->lease.silence = FromSeconds(words.lease_silence);
  run->http.user_agent = fmt::format("muster-initializer/{}", Version());
  run->transfer.cores = ContainerCpus(ReadHostFacts());
  run->threads = Threads(run->transfer.cores);
  run->receivers = kReceivers;
}

// Makes glibc return large blocks to the kernel when they are freed. By default glibc raises its threshold to the
// largest block ever freed, and each thread would keep several windows of zstd.
void ReturnMemory() {
  constexpr int kLarge = 256 << 10;
  mallopt(M_MMAP_THRESHOLD, kLarge);
  mallopt(M_TRIM_THRESHOLD, 2 * kLarge);
}

// Makes the repository's own folder in the cache the target, so that other folders of the cache are never touched.
Status UseHubCache(InitializeOptions* run) {
  auto source = ParseSource(run->uri, run->role);
  if (!source.ok() || source->scheme != Scheme::kHuggingFace) return absl::OkStatus();  // the run reports the error
  if (run->target.empty()) {
    const Environment environment = Environment::OfProcess();
    MUSTER_ASSIGN_OR_RETURN(run->target, FindHubCache(environment, environment.Get("HOME").value_or("")));
  }
  run->target += fmt::format("/{}", HubCacheFolder(*source));
  return absl::OkStatus();
}

// Reads only the flags that decide how a failure is reported, also from a command line that is invalid as a whole.
ProgramOptions Telling(int argc, char** argv) {
  ProgramOptions telling;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  AddTellingFlags(&app, &telling);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError&) {  // an error in these flags; the flags read so far count
  }
  return telling;
}

int Refuse(const ProgramOptions& telling, const Status& status, int code) {
  ProgressView(telling.json).Failed(status, code);
  LeaveLastWord(telling.termination_log, status, std::nullopt, code);
  return code;
}

int Main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);  // if it is inherited as ignored, the kernel discards exit codes
  ReturnMemory();
  ProgramOptions program;
  Words words;
  std::string folder;
  CLI::App app{"Bring a data set or a model into a folder", "muster-initializer"};
  app.set_version_flag("--version", fmt::format("muster-initializer {} (commit {})", Version(), Commit()));
  app.require_subcommand(1);
  for (auto [role, name, target] : {std::tuple(Role::kDataset, "dataset", "/workspace/dataset"),
                                    std::tuple(Role::kModel, "model", "/workspace/model")}) {
    auto* command = app.add_subcommand(name, fmt::format("bring a {} in", name));
    AddFlags(command, &program, &words, target);
    command->callback([&program, role = role, target = target] {
      program.run.role = role;
      if (program.run.target.empty() && !program.run.hub_cache) program.run.target = target;
    });
  }
  auto* verify = app.add_subcommand("verify", "read a folder and compare it with its manifest");
  verify->add_option("folder", folder, "the folder that --to named")->required();
  verify->add_flag("--json", program.json, "the result as a JSON line on stdout");
  std::function<int()> describe;
  usage::AddUsageCommands(&app, &describe);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return 0;
    const ProgramOptions telling = Telling(argc, argv);
    const Status status = absl::InvalidArgumentError(error.what());
    if (telling.json) return Refuse(telling, status, kExitUsage);
    LeaveLastWord(telling.termination_log, status, std::nullopt, kExitUsage);  // CLI11 has printed the error already
    return kExitUsage;
  }
  if (describe) return describe();
  if (Status status = CheckThreads("cannot begin"); !status.ok()) return Refuse(program, status, kExitBadConfiguration);
  if (verify->parsed()) return Verify(folder, program.json);
  if (program.run.uri.empty()) {
    const Status status = absl::InvalidArgumentError("there is no source: give a URI, or set STORAGE_URI");
    return Refuse(program, status, kExitUsage);
  }
  Apply(words, &program.run);
  if (program.run.hub_cache) {
    if (Status used = UseHubCache(&program.run); !used.ok()) {
      return Refuse(program, used, ExitCodeOf(used));
    }
  }
  return Program(std::move(program)).Run();
}

}  // namespace
}  // namespace muster::initializers

int main(int argc, char** argv) {
  muster::FillStandardStreams();
  return muster::initializers::Main(argc, argv);
}
