// SPDX-License-Identifier: Apache-2.0
// `muster status ENDPOINT`: roster, round, restarts and the reason of the last change, once or at every change.
#include <boost/asio/io_context.hpp>
#include <cstdio>

#include "agent/commands/arguments.h"
#include "agent/commands/command_line.h"
#include "agent/commands/commands.h"
#include "agent/flags/flag_values.h"
#include "agent/probe/status_inquiry.h"
#include "agent/probe/wait_targets.h"
#include "agent/watch/status_text.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/text.h"
#include "net/credentials.h"

namespace muster::agent {

using rendezvous::StatusReport;

namespace {

int Say(int code, std::string_view text) {
  PrintTo(stderr, "muster status: {}\n", text);
  return code;
}

}  // namespace

int StatusCommand(const Call& call) {
  Arguments arguments("Show roster, round, restarts and the reason of the last change", "muster status");
  std::string endpoint;
  std::string run_id;
  net::CredentialFiles files;
  bool json = false;
  bool follow = false;
  std::string timeout = "10";
  arguments.Text("endpoint", &endpoint, "HOST[:PORT] of the rendezvous", {.required = true});
  arguments.Text("--run-id", &run_id, "which run, where the coordinator has several");
  AddCredentialFlags(arguments, &files);
  arguments.Text("--timeout", &timeout, "how long to wait for the first answer: 10, 0.5, 2m", {.shows_default = true});
  arguments.Switch("--json", &json, "one JSON object a line");
  arguments.Switch("--follow,-f", &follow,
                   "print at every change until the run ends; wait for a run that is not there yet");
  if (auto end = arguments.Parse(call)) return *end;

  auto target = ParseWaitTarget(endpoint, WaitKind::kRendezvous);
  if (!target.ok()) return Say(kExitUsage, Message(target.status()));
  auto limit = ParseDuration(timeout);
  if (!limit.ok()) return Say(kExitUsage, fmt::format("--timeout '{}': {}", timeout, Message(limit.status())));
  if (*limit <= Duration::zero()) return Say(kExitUsage, fmt::format("--timeout '{}': want more than 0", timeout));
  auto credentials = net::ReadCredentials(files);
  if (!credentials.ok()) return Say(kExitBadConfiguration, Message(credentials.status()));

  auto show = [json](const StatusReport& report) {
    PrintTo(stdout, "{}", json ? StatusJson(report) + "\n" : StatusTable(report));
    std::fflush(stdout);
  };
  boost::asio::io_context loop(1);
  int code = 0;
  auto end = [&](const Status& status) {
    code = status.ok() ? 0 : Say(ExitCodeOfInquiry(status), Message(status));
    loop.stop();
  };
  StatusInquiry inquiry(loop, run_id);
  if (follow) {
    auto say = [](const std::string& text) { Say(0, text); };
    inquiry.Follow(target->Address(), nullptr, *credentials, *limit, {show, say, end});
  } else {
    inquiry.Ask(target->Address(), nullptr, *credentials, *limit, [&](const StatusOr<StatusReport>& report) {
      if (report.ok()) show(*report);
      end(report.status());
    });
  }
  loop.run();
  return code;
}

}  // namespace muster::agent
