// SPDX-License-Identifier: Apache-2.0
// The values of flags, and the flags of all subcommands with workers: log, restart rules, termination message.
//
// The command line wins over the flag's variable, then Kubeflow's (TRAINER_*), then the default. For a wrapped plain
// command torchrun's variables are not read: they may be meant for a torchrun inside.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/flags/torchrun_flag_table.h"
#include "agent/workers/run_options.h"
#include "base/environment.h"
#include "base/status.h"

namespace muster::agent {

// One flag's value and where it came from.
struct FlagValue {
  std::string text;
  std::string origin;  // "--nnodes", "PET_NNODES"; empty: the built-in default
  bool given() const { return !origin.empty(); }
};

// InvalidArgument: "ORIGIN=TEXT: wanted".
Status Bad(const FlagValue& value, std::string_view wanted);
Status Bad(const FlagValue& value, const Status& status);
// What was parsed of the value's text, or Bad() with the reason.
template <typename T>
StatusOr<T> Of(const FlagValue& value, StatusOr<T> parsed) {
  return parsed.ok() ? std::move(parsed) : Bad(value, parsed.status());
}

// A whole number in [lowest, highest], or InvalidArgument.
StatusOr<int> ReadNumber(const FlagValue& value, int lowest, int highest);

// A variable whose value differs from the flag that was given.
struct Overruled {
  std::string_view variable;
  std::string what;  // "--nnodes=2 over PET_NNODES=3"
};
// One line for all of them; `overruled` must not be empty.
std::string Describe(const std::vector<Overruled>& overruled);

class FlagReader {
 public:
  static constexpr int kMost = std::numeric_limits<int>::max();

  // `environment` must outlive it.
  FlagReader(const Environment& environment, CommandLine line, CalledAs called_as);

  const CommandLine& line() const { return line_; }
  bool plain() const { return plain_; }  // `muster exec` of a command that is not wired as torch
  // Whether torchrun's flag `name` says how pods of jax or xgboost meet. Its variable counts: no torchrun is inside.
  bool MeetsBy(std::string_view name) const;
  // `name` must be in the table.
  FlagValue Get(std::string_view name) const;
  // The flag if it is on the command line, else the first of `variables` ("A B") that is set and not empty.
  std::optional<FlagValue> FlagOr(std::string_view name, std::string_view variables) const;
  StatusOr<bool> Switch(std::string_view name) const;
  StatusOr<int> Number(std::string_view name, int lowest, int highest) const {
    return ReadNumber(Get(name), lowest, highest);
  }

  // Every variable that a flag of the command line overrules with another value, of the variables that are read.
  std::vector<Overruled> OverruledVariables(Wire wire) const;

  // Node name, log, termination log.
  Status ReadLog(RunOptions* options) const;
  // All of ReadLog(), and HTTP port, node check, preemption, restart rules.
  Status ReadCommon(RunOptions* options) const;
  // --nproc-per-node, as text and, if it is a number, as a number.
  Status ReadNproc(RunOptions::Workers* workers) const;
  // Where the workers' streams and files go.
  Status ReadLogs(RunOptions::Logs* logs) const;
  // --signals-to-handle and --shutdown-timeout, and which signals are only passed on.
  Status ReadSignals(RunOptions::Signals* signals) const;

 private:
  bool Hears(const Flag& flag) const { return !plain_ || flag.owner != FlagOwner::kTorchrun || MeetsBy(flag.name); }
  Status ReadHttpPort(HttpListen* http) const;
  Status ReadRestartRules(rendezvous::JobOptions* job) const;
  Status ReadHangRules(RunOptions* options) const;
  Status ReadStandby(RunOptions::Standby* standby) const;
  Status ReadProgress(RunOptions::Progress* progress) const;

  const Environment& environment_;
  CommandLine line_;
  CalledAs called_as_;
  bool plain_ = false;
  bool meets_ = false;  // wired as jax or xgboost
};

}  // namespace muster::agent
