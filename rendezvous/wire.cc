// SPDX-License-Identifier: Apache-2.0
// From messages to protobuf. wire_decode.cc has the other direction.
#include "rendezvous/wire.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/reason_line.h"
#include "base/text.h"
#include "base/utf8.h"
#include "rendezvous/rendezvous.pb.h"

namespace muster::rendezvous::wire {
namespace {

int64_t Millis(Duration duration) { return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count(); }

std::string Text(std::string_view text) { return Printable(text, kMaxText); }
// Does not cut a name: two long names must not become the same. The receiver refuses names that are too long.
std::string Name(std::string_view text) { return Printable(text, std::numeric_limits<size_t>::max()); }

void Put(const RoundId& from, v1::RoundId* to) {
  to->set_term(from.term);
  to->set_number(from.number);
}

void Put(const Node& from, v1::Node* to) {
  to->set_name(Name(from.name));
  to->set_incarnation(Name(from.incarnation));
  if (from.index) to->set_index(*from.index);
  to->set_slots(from.slots);
  to->set_role(Name(from.role));
  to->set_host(Printable(from.host, kMaxName));
  to->set_address(Name(from.address));
  to->set_pid(from.pid);
  to->set_control_address(Name(from.control_address));
  to->set_store_host(Name(from.store_host));
  to->set_store_port(from.store_port);
  for (const auto& [name, value] : from.measured) {
    v1::Measure* added = to->add_measured();
    added->set_name(Name(name));
    added->set_value(value);
  }
}

void Put(const Assignment& from, v1::Assignment* to) {
  Put(from.id, to->mutable_id());
  to->set_restart_count(from.restart_count);
  to->set_max_restarts(from.max_restarts);
  to->set_world_size(from.world_size);
  to->set_node_count(from.node_count);
  to->set_node_rank(from.node_rank);
  v1::Seat* seat = to->mutable_seat();
  Put(from.seat.node, seat->mutable_node());
  seat->set_first_rank(from.seat.first_rank);
  seat->set_first_role_rank(from.seat.first_role_rank);
  seat->set_role_world_size(from.seat.role_world_size);
  to->set_master_host(Name(from.master_host));
  to->set_master_port(from.master_port);
  to->set_coordinator_node(Name(from.coordinator_node));
  for (const Successor& successor : from.successors) {
    v1::Successor* added = to->add_successors();
    added->set_node_rank(successor.node_rank);
    added->set_name(Name(successor.name));
    added->set_control_address(Name(successor.control_address));
  }
  to->set_reason(Text(from.reason));
  to->set_cause(static_cast<int>(from.cause));
}

// Subtracts the size of the texts from `budget`, so that a list of failures is bounded as a whole.
void Put(const WorkerFailure& from, v1::WorkerFailure* to, size_t& budget) {
  to->set_node(Name(from.node));
  to->set_host(Printable(from.host, kMaxName));
  to->set_rank(from.rank);
  to->set_local_rank(from.local_rank);
  to->set_pid(from.pid);
  to->set_exit_code(from.exit_code);
  to->set_signal(from.signal);
  to->set_core_dumped(from.core_dumped);
  to->set_oom_killed(from.oom_killed);
  to->set_consequence(from.consequence);
  to->set_late(from.late);
  to->set_error_file(Text(from.error_file));
  to->set_unix_millis(from.unix_millis);
  size_t length = std::min({from.stderr_reason.size(), kMaxText, budget});
  to->set_stderr_reason(from.stderr_reason.data(), length);
  budget -= length;
  length = std::min({from.message.size(), kMaxText, budget});
  // Of a traceback the end is kept, which has the exception; of another text the beginning.
  const size_t left_out = HasTraceback(from.message) ? from.message.size() - length : 0;
  to->set_message(from.message.data() + left_out, length);
  budget -= length;
  size_t skipped = from.stderr_tail.size() - std::min(from.stderr_tail.size(), kMaxTailLines);
  for (size_t line = skipped; line < from.stderr_tail.size() && budget > 0; ++line) {
    length = std::min({from.stderr_tail[line].size(), kMaxText, budget});
    to->add_stderr_tail(from.stderr_tail[line].data(), length);
    budget -= length;
  }
}

template <typename To>
void PutFailures(const std::vector<WorkerFailure>& from, To* to, size_t& budget) {
  for (size_t i = 0; i < std::min(from.size(), kMaxFailures); ++i) Put(from[i], to->add_failures(), budget);
}

void Put(const Report& from, v1::Report* to) {
  Put(from.round, to->mutable_round());
  size_t budget = kReportText;
  PutFailures(from.failures, to, budget);
  to->set_lived_ms(Millis(from.lived));
  if (from.progress) to->set_progress(*from.progress);
}

void Put(const JobOptions& from, v1::JobOptions* to) {
  to->set_min_nodes(from.min_nodes);
  to->set_max_nodes(from.max_nodes);
  to->set_max_restarts(from.max_restarts);
  to->set_policy(static_cast<int>(from.policy));
  to->set_scale_up(static_cast<int>(from.scale_up));
  to->set_indexed(from.indexed);
  for (int code : from.overrides.retry) to->add_retry_codes(code);
  for (int code : from.overrides.fatal) to->add_fatal_codes(code);
  if (from.restart_window) to->set_restart_window_ms(Millis(*from.restart_window));
  to->set_no_progress_limit(from.no_progress_limit);
  to->set_join_timeout_ms(Millis(from.join_timeout));
  to->set_last_call_ms(Millis(from.last_call));
  to->set_heartbeat_timeout_ms(Millis(from.heartbeat_timeout));
}

void Put(const Hello& from, v1::Hello* to) {
  to->set_protocol(from.protocol);
  to->set_version(Printable(from.version, kMaxName));
  to->set_run_id(Name(from.run_id));
  Put(from.node, to->mutable_node());
  Put(from.options, to->mutable_options());
  to->set_state(static_cast<int>(from.state));
  if (from.resume) Put(*from.resume, to->mutable_resume());
  if (from.report) Put(*from.report, to->mutable_report());
  to->set_term(from.term);
  if (from.preparing) to->set_preparing(true);
  to->set_tells_telemetry(from.tells_telemetry);
}

void Put(const Verdict& from, v1::Verdict* to) {
  to->set_exit_code(from.exit_code);
  to->set_reason(Text(from.reason));
  size_t budget = kVerdictText;
  if (from.root_cause) Put(*from.root_cause, to->mutable_root_cause(), budget);
  PutFailures(from.failures, to, budget);
  to->set_budget_used(from.budget_used);
}

void Put(const RankTelemetry& from, v1::RankTelemetry* to) {
  to->set_local_rank(from.local_rank);
  to->set_pid(from.pid);
  if (from.exit_code) to->set_exit_code(*from.exit_code);
  to->set_cpus(static_cast<float>(from.cpus));
  to->set_memory_bytes(from.memory_bytes);
  if (from.gpu_share) to->set_gpu_share(static_cast<float>(*from.gpu_share));
  if (from.gpu_memory_bytes) to->set_gpu_memory_bytes(*from.gpu_memory_bytes);
  to->set_last_line(Printable(from.last_line, kMaxLastLine));
  if (from.silent) to->set_silent_ms(Millis(*from.silent));
  if (from.position) to->set_position(*from.position);
  if (from.end) to->set_end(*from.end);
  if (from.epoch) to->set_epoch(*from.epoch);
  if (from.loss) to->set_loss(*from.loss);
  to->set_in_epochs(from.in_epochs);
  if (from.step_time) to->set_step_us(std::chrono::duration_cast<std::chrono::microseconds>(*from.step_time).count());
}

void Put(const Telemetry& from, v1::Telemetry* to) {
  Put(from.round, to->mutable_round());
  for (const RankTelemetry& rank : from.ranks) {
    if (static_cast<size_t>(to->ranks_size()) == kMaxTelemetryRanks) break;
    Put(rank, to->add_ranks());
  }
  for (const CurvePoint& point : from.curve) {
    if (static_cast<size_t>(to->curve_size()) == 2 * kMaxCurvePoints) break;
    to->add_curve(point.position);
    to->add_curve(point.loss);
  }
  for (const auto& [name, value] : from.seconds) {
    v1::Measure* added = to->add_seconds();
    added->set_name(Name(name));
    added->set_value(value);
  }
}

void Put(const RoundMark& from, v1::RoundMark* to) {
  Put(from.id, to->mutable_id());
  to->set_nodes(from.nodes);
  to->set_world_size(from.world_size);
  to->set_restart_count(from.restart_count);
  to->set_cause(static_cast<int>(from.cause));
  to->set_reason(Text(from.reason));
  to->set_began_ms(Millis(from.began));
  if (from.stopping) to->set_stopping_ms(Millis(*from.stopping));
  to->set_stop_reason(Text(from.stop_reason));
}

void Put(const StatusReport& from, v1::StatusReport* to) {
  to->set_run_id(Name(from.run_id));
  to->set_phase(Name(from.phase));
  Put(from.round, to->mutable_round());
  to->set_restart_count(from.restart_count);
  to->set_max_restarts(from.max_restarts);
  to->set_min_nodes(from.min_nodes);
  to->set_max_nodes(from.max_nodes);
  to->set_reason(Text(from.reason));
  for (const StatusLine& line : from.nodes) {
    v1::StatusLine* added = to->add_nodes();
    added->set_node(Name(line.node));
    added->set_host(Printable(line.host, kMaxName));
    added->set_state(Name(line.state));
    if (line.rank) added->set_rank(*line.rank);
    added->set_slots(line.slots);
    added->set_pid(line.pid);
    added->set_last_heard_ms(Millis(line.last_heard));
    added->set_remark(Text(line.remark));
    added->set_control_address(Name(line.control_address));
    if (line.telemetry) Put(*line.telemetry, added->mutable_telemetry());
  }
  size_t budget = kVerdictText;
  if (from.overcome) Put(*from.overcome, to->mutable_overcome(), budget);
  for (const LostNode& lost : from.lost) {
    v1::LostNode* added = to->add_lost();
    added->set_node(Name(lost.node));
    added->set_host(Printable(lost.host, kMaxName));
    added->set_control_address(Name(lost.control_address));
    added->set_closed(lost.closed);
    added->set_lost_ms(Millis(lost.lost));
    added->set_last_heard_ms(Millis(lost.last_heard));
  }
  to->set_cut_off(from.cut_off);
  to->set_heartbeat_timeout_ms(Millis(from.heartbeat_timeout));
  for (const RoundMark& mark : from.rounds) Put(mark, to->add_rounds());
}

void Put(const Beat& from, v1::Beat* to) {
  if (from.round != RoundId{}) Put(from.round, to->mutable_round());
  if (from.silent) to->set_silent(true);
  if (from.preparing) to->set_preparing(true);
  if (from.lease) to->set_lease(true);
  if (from.stamp != 0) to->set_stamp(from.stamp);
}

struct NodeWriter {
  v1::FromNode& to;
  void operator()(const Hello& from) { Put(from, to.mutable_hello()); }
  void operator()(const Beat& from) { Put(from, to.mutable_beat()); }
  void operator()(const Ready& from) {
    Put(from.round, to.mutable_ready()->mutable_round());
    to.mutable_ready()->set_store_port(from.store_port);
    if (from.progress) to.mutable_ready()->set_progress(*from.progress);
    to.mutable_ready()->set_cut_off(from.cut_off);
  }
  void operator()(const Report& from) { Put(from, to.mutable_report()); }
  void operator()(const Leave& from) {
    to.mutable_leave()->set_reason(Text(from.reason));
    to.mutable_leave()->set_unhealthy(from.cause == LeaveCause::kUnhealthy);
    to.mutable_leave()->set_preempted(from.cause == LeaveCause::kPreempted);
  }
  void operator()(const Doubt&) { to.mutable_doubt(); }
  void operator()(const Inspect& from) {
    to.mutable_inspect()->set_run_id(Name(from.run_id));
    to.mutable_inspect()->set_follow(from.follow);
    if (from.telemetry) to.mutable_inspect()->set_telemetry(true);
  }
  void operator()(const Supersede& from) {
    to.mutable_supersede()->set_run_id(Name(from.run_id));
    to.mutable_supersede()->set_term(from.term);
    to.mutable_supersede()->set_address(Name(from.address));
    to.mutable_supersede()->set_waits(from.waits);
  }
  void operator()(const Imports& from) { to.mutable_imports()->set_names(from.names); }
  void operator()(const Telemetry& from) { Put(from, to.mutable_telemetry()); }
};

struct CoordinatorWriter {
  v1::FromCoordinator& to;
  void operator()(const Welcome& from) {
    to.mutable_welcome()->set_term(from.term);
    to.mutable_welcome()->set_beat_interval_ms(Millis(from.beat_interval));
    to.mutable_welcome()->set_coordinator(Printable(from.coordinator, kMaxName));
    to.mutable_welcome()->set_imports(from.imports);
    to.mutable_welcome()->set_leases(from.leases);
    if (from.node) to.mutable_welcome()->set_node(Name(*from.node));
  }
  void operator()(const Beat& from) { Put(from, to.mutable_beat()); }
  void operator()(const Start& from) { Put(from.assignment, to.mutable_start()->mutable_assignment()); }
  void operator()(const Stop& from) {
    Put(from.round, to.mutable_stop()->mutable_round());
    to.mutable_stop()->set_reason(Text(from.reason));
    to.mutable_stop()->set_cause(static_cast<int>(from.cause));
    to.mutable_stop()->set_keep_evidence(from.keep_evidence);
    if (from.at_once) to.mutable_stop()->set_at_once(true);
  }
  void operator()(const Finish& from) {
    to.mutable_finish()->set_term(from.term);
    Put(from.verdict, to.mutable_finish()->mutable_verdict());
  }
  void operator()(const Refuse& from) {
    to.mutable_refuse()->set_exit_code(from.exit_code);
    to.mutable_refuse()->set_reason(Text(from.reason));
  }
  void operator()(const Redirect& from) {
    to.mutable_redirect()->set_term(from.term);
    to.mutable_redirect()->set_address(Name(from.address));
  }
  void operator()(const Notice& from) {
    to.mutable_notice()->set_text(Text(from.text));
    if (from.prepare) to.mutable_notice()->set_prepare(true);
  }
  void operator()(const StatusReport& from) { Put(from, to.mutable_status()); }
  void operator()(const Imports& from) { to.mutable_imports()->set_names(from.names); }
  void operator()(const TelemetryWanted&) { to.mutable_telemetry_wanted(); }
};

}  // namespace

std::string Printable(std::string_view text, size_t limit) {
  std::string result;
  result.reserve(std::min(text.size(), limit));
  while (!text.empty() && result.size() < limit) {
    const auto [code, length, valid] = FirstCharacter(text);
    if (!valid) {
      result += '?';
      text.remove_prefix(1);
      continue;
    }
    if (result.size() + length > limit) break;
    result += text.substr(0, length);
    text.remove_prefix(length);
  }
  return result;
}

std::string Encode(const NodeMessage& message) {
  v1::FromNode proto;
  std::visit(NodeWriter{proto}, message);
  return proto.SerializeAsString();
}

std::string Encode(const CoordinatorMessage& message) {
  v1::FromCoordinator proto;
  std::visit(CoordinatorWriter{proto}, message);
  return proto.SerializeAsString();
}

}  // namespace muster::rendezvous::wire
