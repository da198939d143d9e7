// muster-initializer {dataset|model} [URI] [--to DIR]: flags and environment -> one run -> exit code.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdlib>

#include "base/exit_codes.h"
#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "initializers/initialize.h"
#include "initializers/progress_view.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

std::optional<std::string> Environment(std::string_view name) {
  const char* value = getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::vector<std::string> Patterns(const std::string& list) {
  std::vector<std::string> patterns;
  for (std::string_view part : Split(list, ',')) {
    if (!Strip(part).empty()) patterns.emplace_back(Strip(part));
  }
  return patterns;
}

class Program {
 public:
  explicit Program(InitializeOptions options, bool json) : options_(std::move(options)), progress_(json) {}

  int Run() {
    signals_.async_wait([this](boost::system::error_code error, int signal) {
      if (error) return;
      progress_.Say(
          fmt::format("{}: stopping; what is there is kept, the next start goes on from it", SignalName(signal)));
      code_ = 128 + signal;
      loop_.stop();
    });
    Initialize::Events events;
    events.say = [this](const std::string& text) { progress_.Say(text); };
    events.end = [this](StatusOr<InitializeResult> result) { End(std::move(result)); };
    Initialize run(loop_, options_, Environment, std::move(events));
    run_ = &run;
    run.Begin();
    Tick();
    loop_.run();
    return code_;
  }

 private:
  void Tick() {
    timer_.expires_after(progress_.interval());
    timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      progress_.Show(run_->counts(), MonotonicClock::now());
      Tick();
    });
  }
  void End(StatusOr<InitializeResult> result) {
    timer_.cancel();
    signals_.cancel();
    if (result.ok()) {
      progress_.Done(*result, options_.dry_run);
    } else {
      code_ = ExitCodeOf(result.status());
      progress_.Failed(result.status(), code_);
    }
    loop_.stop();
  }

  const InitializeOptions options_;
  ProgressView progress_;
  asio::io_context loop_{1};
  asio::signal_set signals_{loop_, SIGINT, SIGTERM};
  asio::steady_timer timer_{loop_};
  Initialize* run_ = nullptr;
  int code_ = 0;
};

int Main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  InitializeOptions options;
  std::string verify = "full";
  std::string include;
  std::string ignore;
  bool json = false;
  double patience = 300;  // seconds
  double stall = 20;      // seconds
  CLI::App app{"Bring a data set or a model into a folder", "muster-initializer"};
  app.set_version_flag("--version", fmt::format("muster-initializer {} (commit {})", Version(), Commit()));
  app.require_subcommand(1);
  for (auto [role, name, target] : {std::tuple(Role::kDataset, "dataset", "/workspace/dataset"),
                                    std::tuple(Role::kModel, "model", "/workspace/model")}) {
    auto* command = app.add_subcommand(name, fmt::format("bring a {} in", name));
    command->add_option("uri", options.uri, "s3://BUCKET/KEY, https://HOST/FILE ...")->envname("STORAGE_URI");
    command->add_option("--to", options.target, fmt::format("the folder it goes to; default {}", target));
    command->add_option("--include", include, "only what matches one of these patterns, with commas between");
    command->add_option("--ignore", ignore, "nothing that matches one of these patterns")->envname("IGNORE_PATTERNS");
    command->add_option("--verify", verify, "full | size | none: what is checked of every file")
        ->check(CLI::IsMember({"full", "size", "none"}));
    command->add_option("--version-id", options.version_id, "of one S3 object");
    command->add_option("--ca-bundle", options.http.ca_bundle, "certificates to trust, a file");
    command->add_option("--patience", patience, "give up after so many seconds without any progress; default 300")
        ->check(CLI::Range(0.0, 1e6));
    command
        ->add_option("--stall-timeout", stall,
                     "a connection that is slower than 32 KiB/s for so many seconds is "
                     "given up for another one; default 20")
        ->check(CLI::Range(1.0, 1e6));
    command->add_flag("--anonymous", options.anonymous, "send no credentials");
    command->add_flag("--dry-run", options.dry_run, "say what would be moved, and move nothing");
    command->add_flag("--json", json, "events as JSON lines on stdout");
    command->callback([&options, role = role, target = target] {
      options.role = role;
      if (options.target.empty()) options.target = target;
    });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kExitUsage;
  }
  if (options.uri.empty()) {
    log::Error("what to bring in is not said: give a URI, or set STORAGE_URI");
    return kExitUsage;
  }
  options.include = Patterns(include);
  options.ignore = Patterns(ignore);
  options.transfer.verify = verify == "full";
  options.transfer.retry.patience = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(patience));
  options.transfer.limits.silence = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(stall));
  options.http.user_agent = fmt::format("muster-initializer/{}", Version());
  options.threads = static_cast<int>(std::max(2L, std::min(8L, sysconf(_SC_NPROCESSORS_ONLN))));
  return Program(std::move(options), json).Run();
}

}  // namespace
}  // namespace muster::initializers

int main(int argc, char** argv) { return muster::initializers::Main(argc, argv); }
