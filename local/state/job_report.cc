// SPDX-License-Identifier: Apache-2.0
#include "local/state/job_report.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>

#include "base/asked_command.h"
#include "base/state_folder.h"
#include "base/text.h"

namespace muster::local {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

constexpr size_t kMostSaid = 64 << 10;
constexpr std::chrono::seconds kLongest(30);

// POD/RUN/attempt_N/attempt.json
bool HasRecord(const std::string& attempts) {
  std::error_code error;
  for (fs::recursive_directory_iterator it(attempts, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename() == "attempt.json") return true;
    if (it.depth() == 3) it.disable_recursion_pending();
  }
  return false;
}

}  // namespace

StatusOr<std::string> WriteJobReport(const std::string& muster, const std::string& folder) {
  const std::string page = ReportPath(folder);
  if (!HasRecord(AttemptsFolder(folder))) return absl::NotFoundError("no agent has left a record");
  std::vector<std::string> words = {muster, "report", folder, "-o", page};
  asio::io_context loop;
  StatusOr<CommandAnswer> answer = absl::UnknownError("");
  asio::co_spawn(loop, AskedCommand(std::move(words), Environment::OfProcess(), kMostSaid, kLongest),
                 [&answer](const std::exception_ptr&, StatusOr<CommandAnswer> given) { answer = std::move(given); });
  loop.run();
  if (!answer.ok()) return Annotate(answer.status(), "muster report");
  if (answer->code != 0) {
    return absl::InternalError(fmt::format("muster report ended with code {}: {}", answer->code, answer->complaints));
  }
  return page;
}

}  // namespace muster::local
