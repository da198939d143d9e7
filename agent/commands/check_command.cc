// SPDX-License-Identifier: Apache-2.0
// `muster check`: measures within 2 s what this machine can do. Ends with 204 if a figure is worse than a flag allows.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "agent/commands/arguments.h"
#include "agent/commands/commands.h"
#include "agent/probe/machine_check.h"
#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/json_fields.h"
#include "base/print.h"
#include "base/text.h"
#include "rendezvous/outliers.h"

namespace muster::agent {
namespace {

struct Bound {
  std::string_view name;
  const char* flag;
  bool at_least;
  double value = 0;  // 0: none
};

std::string DefaultFolder() {
  const Environment environment = Environment::OfProcess();
  for (std::string_view name : {"PET_LOG_DIR", "TMPDIR"}) {
    std::string folder = environment.Get(name).value_or("");
    if (!folder.empty() && folder != "/dev/null" && access(folder.c_str(), W_OK | X_OK) == 0) return folder;
  }
  return "/tmp";
}

std::string Name(const MachineFigure& figure) {
  if (figure.where.empty()) return figure.name;
  return fmt::format("{} {} {}", figure.name, figure.name == "disk" ? "in" : "to", figure.where);
}

// One sentence for each figure that is beyond its bound.
std::vector<std::string> Beyond(const std::vector<MachineFigure>& figures, const std::vector<Bound>& bounds) {
  std::vector<std::string> told;
  for (const MachineFigure& figure : figures) {
    auto bound = std::find_if(bounds.begin(), bounds.end(), [&](const Bound& b) { return b.name == figure.name; });
    if (bound == bounds.end() || bound->value == 0 || !figure.value) continue;
    if (bound->at_least ? *figure.value >= bound->value : *figure.value <= bound->value) continue;
    told.push_back(fmt::format(
        "{} is {}, {} {} is asked for ({}){}", Name(figure), rendezvous::DescribeMeasure(figure.name, *figure.value),
        bound->at_least ? "at least" : "at most", rendezvous::DescribeMeasure(figure.name, bound->value), bound->flag,
        figure.why.empty() ? "" : ": " + figure.why));
  }
  return told;
}

std::string AsJson(const std::vector<MachineFigure>& figures, const std::vector<std::string>& beyond) {
  nlohmann::ordered_json json;
  json["measured"] = nlohmann::ordered_json::object();
  json["parts"] = nlohmann::ordered_json::array();
  for (const MachineFigure& figure : figures) {
    nlohmann::ordered_json part;
    part["name"] = figure.name;
    if (!figure.where.empty()) part["where"] = figure.where;
    if (figure.value) {
      part["value"] = *figure.value;
      auto [known, fresh] = json["measured"].emplace(figure.name, *figure.value);
      if (!fresh) *known = std::max(known->get<double>(), *figure.value);  // the farthest of several peers
    }
    if (!figure.why.empty()) part["why"] = figure.why;
    json["parts"].push_back(std::move(part));
  }
  json["beyond"] = beyond;
  return WriteJson(json);
}

std::string AsTable(const std::vector<MachineFigure>& figures) {
  std::string text;
  for (const MachineFigure& figure : figures) {
    std::string value = figure.value ? rendezvous::DescribeMeasure(figure.name, *figure.value) : "-";
    text += fmt::format("{:<28} {:>12}{}{}\n", Name(figure), value, figure.why.empty() ? "" : "  ", figure.why);
  }
  return text;
}

}  // namespace

int CheckCommand(const Call& call) {
  Arguments arguments("Measure memory, loopback, disk and the round trip to peers, within 2 seconds", "muster check");
  bool json = false;
  std::string peers;
  std::string disk;
  std::vector<Bound> bounds = {{"memory", "--min-memory", true},
                               {"loopback", "--min-loopback", true},
                               {"disk", "--min-disk", true},
                               {"round trip", "--max-round-trip", false}};
  arguments.TakeLast();
  arguments.Switch("--json", &json, "one JSON object in one line");
  arguments.Text("--peers", &peers, "HOST:PORT,...: measure the time of a connect to each");
  arguments.Text("--disk", &disk, "folder that is written to; default: PET_LOG_DIR, TMPDIR or /tmp",
                 {.metavar = "DIR"});
  const char* help[] = {"GB/s that memory must reach", "GB/s that loopback must reach", "MB/s that the disk must reach",
                        "ms within which each peer must answer"};
  for (size_t i = 0; i < bounds.size(); ++i) {
    arguments.Positive(bounds[i].flag, &bounds[i].value, help[i]);
  }
  if (auto end = arguments.Parse(call)) return *end;

  MachineCheckOptions options;
  options.disk = disk.empty() ? DefaultFolder() : disk;
  for (std::string_view peer : Split(peers, ',')) {
    auto parsed = net::ParseHostPort(std::string(Strip(peer)));
    if (!parsed.ok()) {
      PrintTo(stderr, "muster check: --peers {}: {}\n", peer, Message(parsed.status()));
      return kExitUsage;
    }
    options.peers.push_back(*std::move(parsed));
  }
  signal(SIGXFSZ, SIG_IGN);  // beyond RLIMIT_FSIZE write() fails instead
  std::vector<MachineFigure> figures = MeasureMachine(options);
  std::vector<std::string> beyond = Beyond(figures, bounds);
  PrintTo(stdout, "{}", json ? AsJson(figures, beyond) + "\n" : AsTable(figures));
  std::fflush(stdout);
  if (!beyond.empty()) PrintTo(stderr, "muster check: {}\n", Join(beyond, "; "));
  std::fflush(stderr);
  _exit(beyond.empty() ? 0 : kExitNodeUnhealthy);  // a thread may still wait for a disk that does not answer
}

}  // namespace muster::agent
