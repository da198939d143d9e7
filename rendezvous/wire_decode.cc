// SPDX-License-Identifier: Apache-2.0
// From protobuf to messages. Every field is checked.
#include "rendezvous/wire.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/text.h"
#include "base/version.h"
#include "rendezvous/rendezvous.pb.h"

namespace muster::rendezvous::wire {
namespace {

constexpr uint64_t kMaxTerm = uint64_t{1} << 48;  // far below the value at which incrementing would wrap
constexpr int64_t kMaxRound = int64_t{1} << 48;
constexpr int64_t kMaxMillis = int64_t{10} * 365 * 24 * 3600 * 1000;  // ten years: no sensible duration is longer
constexpr int kMaxCount = 1 << 24;                                    // nodes, slots, ranks, restarts

// Reads fields one after the other and remembers the first error. After an error the caller drops the whole message.
class Reader {
 public:
  Status status() const { return status_; }

  template <typename T>
  T Number(const char* field, T value, T low, T high) {
    if (value < low || value > high) Wrong(fmt::format("{} is {}, must be {} to {}", field, value, low, high));
    return std::clamp(value, low, high);
  }
  uint64_t Term(uint64_t value) { return Number("term", value, uint64_t{0}, kMaxTerm); }
  int Count(const char* field, int value) { return Number(field, value, 0, kMaxCount); }
  RoundCause Cause(int value) {
    return static_cast<RoundCause>(Number("cause", value, 0, static_cast<int>(RoundCause::kSuccess)));
  }
  int Port(const char* field, int value) { return Number(field, value, 0, 65535); }
  Duration Time(const char* field, int64_t millis) {
    return std::chrono::milliseconds(Number(field, millis, int64_t{0}, kMaxMillis));
  }
  // nullopt: infinite, or not a number.
  static std::optional<double> Real(double value) { return std::isfinite(value) ? std::optional(value) : std::nullopt; }
  std::string Identifier(const char* field, const std::string& text) {
    if (text.size() > kMaxName) {
      Wrong(fmt::format("{} has {} bytes, at most {} are allowed", field, text.size(), kMaxName));
    } else if (Printable(text, kMaxName) != text) {
      Wrong(fmt::format("{} is not UTF-8", field));
    }
    return text;
  }
  std::string Bytes(const std::string& text) { return text.substr(0, kMaxText); }

  RoundId Get(const v1::RoundId& from) {
    return {Term(from.term()), Number("round number", from.number(), int64_t{-1}, kMaxRound)};
  }

  Node Get(const v1::Node& from) {
    Node node;
    node.name = Identifier("node name", from.name());
    node.incarnation = Identifier("incarnation", from.incarnation());
    if (from.has_index()) node.index = Count("node index", from.index());
    node.slots = Count("slots", from.slots());
    node.role = Identifier("role", from.role());
    node.host = Printable(from.host(), kMaxName);
    node.address = Identifier("address", from.address());
    node.pid = Number("pid", from.pid(), int64_t{0}, std::numeric_limits<int64_t>::max());
    node.control_address = Identifier("control address", from.control_address());
    node.store_host = Identifier("store host", from.store_host());
    node.store_port = Port("store port", from.store_port());
    if (static_cast<size_t>(from.measured_size()) > kMaxMeasured) Wrong("too many measured figures");
    for (const v1::Measure& measure : from.measured()) {
      if (!status_.ok()) break;
      if (measure.name().size() > kMaxMeasuredName) Wrong("a measured figure's name is too long");
      if (!std::isfinite(measure.value()) || measure.value() < 0) Wrong("a measured figure is not a number >= 0");
      node.measured.emplace(Identifier("measured figure", measure.name()), measure.value());
    }
    return node;
  }

  Leave Get(const v1::Leave& from) {
    return {Printable(from.reason(), kMaxText), from.unhealthy()   ? LeaveCause::kUnhealthy
                                                : from.preempted() ? LeaveCause::kPreempted
                                                                   : LeaveCause::kAsked};
  }

  Assignment Get(const v1::Assignment& from) {
    Assignment assignment;
    assignment.id = Get(from.id());
    assignment.restart_count = Count("restart count", from.restart_count());
    assignment.max_restarts = Number("max restarts", from.max_restarts(), 0, std::numeric_limits<int>::max());
    assignment.world_size = Count("world size", from.world_size());
    assignment.node_count = Count("node count", from.node_count());
    assignment.node_rank = Count("node rank", from.node_rank());
    if (assignment.node_rank >= assignment.node_count) {
      Wrong(fmt::format("node rank is {} of {} nodes", assignment.node_rank, assignment.node_count));
    }
    assignment.seat.node = Get(from.seat().node());
    assignment.seat.first_rank = Count("first rank", from.seat().first_rank());
    assignment.seat.first_role_rank = Count("first role rank", from.seat().first_role_rank());
    assignment.seat.role_world_size = Count("role world size", from.seat().role_world_size());
    assignment.master_host = Identifier("master host", from.master_host());
    assignment.master_port = Port("master port", from.master_port());
    assignment.coordinator_node = Identifier("coordinator node", from.coordinator_node());
    if (static_cast<size_t>(from.successors_size()) > kMaxSuccessors) Wrong("too many successors");
    for (const v1::Successor& successor : from.successors()) {
      if (!status_.ok()) break;
      assignment.successors.push_back({Count("successor's rank", successor.node_rank()),
                                       Identifier("successor's name", successor.name()),
                                       Identifier("successor's address", successor.control_address())});
    }
    assignment.reason = Printable(from.reason(), kMaxText);
    assignment.cause = Cause(from.cause());
    return assignment;
  }

  WorkerFailure Get(const v1::WorkerFailure& from) {
    WorkerFailure failure;
    failure.node = Identifier("failure's node", from.node());
    failure.host = Printable(from.host(), kMaxName);
    failure.rank = Number("failure's rank", from.rank(), -1, kMaxCount);
    failure.local_rank = Number("failure's local rank", from.local_rank(), -1, kMaxCount);
    failure.pid = Number("failure's pid", from.pid(), int64_t{0}, std::numeric_limits<int64_t>::max());
    failure.exit_code = Number("failure's exit code", from.exit_code(), 0, 255);
    failure.signal = Number("failure's signal", from.signal(), 0, 127);
    failure.core_dumped = from.core_dumped();
    failure.oom_killed = from.oom_killed();
    failure.consequence = from.consequence();
    failure.late = from.late();
    failure.message = Bytes(from.message());
    failure.error_file = Printable(from.error_file(), kMaxText);
    size_t lines = static_cast<size_t>(from.stderr_tail_size());
    for (size_t line = lines - std::min(lines, kMaxTailLines); line < lines; ++line) {
      failure.stderr_tail.push_back(Bytes(from.stderr_tail(static_cast<int>(line))));
    }
    failure.stderr_reason = Bytes(from.stderr_reason());
    failure.unix_millis = from.unix_millis();
    return failure;
  }

  template <typename From>
  std::vector<WorkerFailure> Failures(const From& from) {
    std::vector<WorkerFailure> failures;
    for (const v1::WorkerFailure& failure : from) {
      if (failures.size() == kMaxFailures) break;
      failures.push_back(Get(failure));
    }
    return failures;
  }

  Report Get(const v1::Report& from) {
    Report report;
    report.round = Get(from.round());
    report.failures = Failures(from.failures());
    report.lived = Time("lifetime", from.lived_ms());
    if (from.has_progress()) report.progress = from.progress();
    return report;
  }

  std::set<int> Codes(const char* field, const google::protobuf::RepeatedField<int32_t>& from) {
    std::set<int> codes;
    for (int code : from) codes.insert(Number(field, code, 1, 255));
    return codes;
  }

  JobOptions Get(const v1::JobOptions& from) {
    JobOptions options;
    options.min_nodes = Number("min nodes", from.min_nodes(), 1, kMaxCount);
    options.max_nodes = Number("max nodes", from.max_nodes(), options.min_nodes, kMaxCount);
    options.max_restarts = Number("max restarts", from.max_restarts(), 0, std::numeric_limits<int>::max());
    options.policy = static_cast<RestartPolicy>(
        Number("restart policy", from.policy(), 0, static_cast<int>(RestartPolicy::kExitCode)));
    options.scale_up =
        static_cast<ScaleUp>(Number("scale-up", from.scale_up(), 0, static_cast<int>(ScaleUp::kAtRestart)));
    options.indexed = from.indexed();
    options.overrides.retry = Codes("retry code", from.retry_codes());
    options.overrides.fatal = Codes("fatal code", from.fatal_codes());
    if (from.has_restart_window_ms()) options.restart_window = Time("restart window", from.restart_window_ms());
    options.no_progress_limit =
        Number("no-progress limit", from.no_progress_limit(), 0, std::numeric_limits<int>::max());
    options.join_timeout = Time("join timeout", from.join_timeout_ms());
    options.last_call = Time("last call", from.last_call_ms());
    options.heartbeat_timeout = Time("heartbeat timeout", from.heartbeat_timeout_ms());
    return options;
  }

  Hello Get(const v1::Hello& from) {
    Hello hello;
    hello.protocol = from.protocol();
    hello.version = Printable(from.version(), kMaxName);
    // The other fields may mean something else then. The coordinator refuses such a Hello, and names both versions.
    if (hello.protocol != kRendezvousProtocol) {
      hello.run_id = Printable(from.run_id(), kMaxName);
      hello.node.name = Printable(from.node().name(), kMaxName);
      return hello;
    }
    hello.run_id = Identifier("run id", from.run_id());
    hello.node = Get(from.node());
    if (hello.node.name.empty()) Wrong("the node has no name");
    hello.options = Get(from.options());
    hello.state = static_cast<NodeState>(Number("node state", from.state(), 0, static_cast<int>(NodeState::kStopping)));
    if (from.has_resume()) hello.resume = Get(from.resume());
    if (from.has_report()) hello.report = Get(from.report());
    hello.term = Term(from.term());
    hello.preparing = from.preparing();
    hello.tells_telemetry = from.tells_telemetry();
    return hello;
  }

  Verdict Get(const v1::Verdict& from) {
    Verdict verdict;
    verdict.exit_code = Number("exit code", from.exit_code(), 0, 255);
    verdict.reason = Printable(from.reason(), kMaxText);
    if (from.has_root_cause()) verdict.root_cause = Get(from.root_cause());
    verdict.failures = Failures(from.failures());
    verdict.budget_used = from.budget_used();
    return verdict;
  }

  RankTelemetry Get(const v1::RankTelemetry& from) {
    RankTelemetry rank;
    rank.local_rank = Count("local rank", from.local_rank());
    rank.pid = Number("pid", from.pid(), int64_t{0}, std::numeric_limits<int64_t>::max());
    if (from.has_exit_code()) rank.exit_code = Number("exit code", from.exit_code(), 0, 255);
    rank.cpus = Real(from.cpus()).value_or(0);
    rank.memory_bytes = Number("memory", from.memory_bytes(), int64_t{0}, std::numeric_limits<int64_t>::max());
    if (from.has_gpu_share()) rank.gpu_share = Real(from.gpu_share());
    if (from.has_gpu_memory_bytes()) {
      rank.gpu_memory_bytes =
          Number("GPU memory", from.gpu_memory_bytes(), int64_t{0}, std::numeric_limits<int64_t>::max());
    }
    rank.last_line = Printable(from.last_line(), kMaxLastLine);
    if (from.has_silent_ms()) rank.silent = Time("time without output", from.silent_ms());
    if (from.has_position()) rank.position = Real(from.position());
    if (from.has_end()) rank.end = Real(from.end());
    if (from.has_epoch()) rank.epoch = Real(from.epoch());
    if (from.has_loss()) rank.loss = from.loss();  // may be infinite or not a number
    rank.in_epochs = from.in_epochs();
    if (from.has_step_us()) {
      rank.step_time = std::chrono::microseconds(Number("step time", from.step_us(), int64_t{0}, kMaxMillis * 1000));
    }
    return rank;
  }

  Telemetry Get(const v1::Telemetry& from) {
    Telemetry telemetry;
    telemetry.round = Get(from.round());
    if (static_cast<size_t>(from.ranks_size()) > kMaxTelemetryRanks) Wrong("the telemetry has too many ranks");
    if (static_cast<size_t>(from.curve_size()) > 2 * kMaxCurvePoints)
      Wrong("the telemetry's curve has too many points");
    if (static_cast<size_t>(from.seconds_size()) > kMaxMeasured) Wrong("the telemetry has too many times");
    if (!status_.ok()) return telemetry;
    for (const v1::RankTelemetry& rank : from.ranks()) telemetry.ranks.push_back(Get(rank));
    for (int at = 0; at + 1 < from.curve_size(); at += 2) {
      const auto position = Real(from.curve(at)), loss = Real(from.curve(at + 1));
      if (position && loss) telemetry.curve.push_back({*position, *loss});
    }
    for (const v1::Measure& one : from.seconds()) {
      telemetry.seconds[Identifier("use of time", one.name())] = Real(one.value()).value_or(0);
    }
    return telemetry;
  }

  RoundMark Get(const v1::RoundMark& from) {
    RoundMark mark;
    mark.id = Get(from.id());
    mark.nodes = Count("nodes of a round", from.nodes());
    mark.world_size = Count("world size of a round", from.world_size());
    mark.restart_count = Count("restart count of a round", from.restart_count());
    mark.cause = Cause(from.cause());
    mark.reason = Printable(from.reason(), kMaxText);
    mark.began = Time("time since a round's begin", from.began_ms());
    if (from.has_stopping_ms()) mark.stopping = Time("time since a round's end", from.stopping_ms());
    mark.stop_reason = Printable(from.stop_reason(), kMaxText);
    return mark;
  }

  StatusReport Get(const v1::StatusReport& from) {
    StatusReport report;
    report.run_id = Identifier("run id", from.run_id());
    report.phase = Identifier("phase", from.phase());
    report.round = Get(from.round());
    report.restart_count = Count("restart count", from.restart_count());
    report.max_restarts = Number("max restarts", from.max_restarts(), 0, std::numeric_limits<int>::max());
    report.min_nodes = Count("min nodes", from.min_nodes());
    report.max_nodes = Count("max nodes", from.max_nodes());
    report.reason = Printable(from.reason(), kMaxText);
    if (static_cast<size_t>(from.nodes_size()) > kMaxStatusLines) Wrong("the status has too many nodes");
    for (const v1::StatusLine& line : from.nodes()) {
      if (!status_.ok()) break;
      StatusLine& added = report.nodes.emplace_back();
      added.node = Identifier("node name", line.node());
      added.host = Printable(line.host(), kMaxName);
      added.state = Identifier("node state", line.state());
      if (line.has_rank()) added.rank = Count("rank", line.rank());
      added.slots = Count("slots", line.slots());
      added.pid = Number("pid", line.pid(), int64_t{0}, std::numeric_limits<int64_t>::max());
      added.last_heard = Time("last heard", line.last_heard_ms());
      added.remark = Printable(line.remark(), kMaxText);
      added.control_address = Printable(line.control_address(), kMaxName);
      if (line.has_telemetry()) added.telemetry = Get(line.telemetry());
    }
    if (static_cast<size_t>(from.rounds_size()) > kMostMarks) Wrong("the status has too many rounds");
    for (const v1::RoundMark& mark : from.rounds()) {
      if (!status_.ok()) break;
      report.rounds.push_back(Get(mark));
    }
    if (from.has_overcome()) report.overcome = Get(from.overcome());
    if (static_cast<size_t>(from.lost_size()) > kMostLost) Wrong("the status has too many lost nodes");
    for (const v1::LostNode& lost : from.lost()) {
      if (!status_.ok()) break;
      LostNode& added = report.lost.emplace_back();
      added.node = Identifier("name of a lost node", lost.node());
      added.host = Printable(lost.host(), kMaxName);
      added.control_address = Printable(lost.control_address(), kMaxName);
      added.closed = lost.closed();
      added.lost = Time("time since a loss", lost.lost_ms());
      added.last_heard = Time("last heard", lost.last_heard_ms());
    }
    report.cut_off = from.cut_off();
    report.heartbeat_timeout = Time("heartbeat timeout", from.heartbeat_timeout_ms());
    return report;
  }

  Beat Get(const v1::Beat& from) {
    Beat beat;
    if (from.has_round()) beat.round = Get(from.round());
    beat.silent = from.silent();
    beat.preparing = from.preparing();
    beat.lease = from.lease();
    beat.stamp = from.stamp();
    return beat;
  }

  Ready Get(const v1::Ready& from) {
    Ready ready{Get(from.round()), Port("store port", from.store_port()), std::nullopt};
    if (from.has_progress()) ready.progress = from.progress();
    ready.cut_off = from.cut_off();
    return ready;
  }

  Imports Get(const v1::Imports& from) {
    if (from.names().size() > kMaxImports) {
      Wrong(fmt::format("imports: {} bytes, at most {} are allowed", from.names().size(), kMaxImports));
    }
    return {from.names()};
  }

  NodeMessage Get(const v1::FromNode& from) {
    switch (from.message_case()) {
      case v1::FromNode::kHello:
        return Get(from.hello());
      case v1::FromNode::kBeat:
        return Get(from.beat());
      case v1::FromNode::kReady:
        return Get(from.ready());
      case v1::FromNode::kReport:
        return Get(from.report());
      case v1::FromNode::kLeave:
        return Get(from.leave());
      case v1::FromNode::kDoubt:
        return Doubt{};
      case v1::FromNode::kInspect:
        return Inspect{Identifier("run id", from.inspect().run_id()), from.inspect().follow(),
                       from.inspect().telemetry()};
      case v1::FromNode::kSupersede:
        return Supersede{Identifier("run id", from.supersede().run_id()), Term(from.supersede().term()),
                         Identifier("address", from.supersede().address()), from.supersede().waits()};
      case v1::FromNode::kImports:
        return Get(from.imports());
      case v1::FromNode::kTelemetry:
        return Get(from.telemetry());
      case v1::FromNode::MESSAGE_NOT_SET:
        break;
    }
    Wrong("a message of no known kind");
    return Beat{};
  }

  Welcome Get(const v1::Welcome& from) {
    Welcome welcome{Term(from.term()), Time("beat interval", from.beat_interval_ms()),
                    Printable(from.coordinator(), kMaxName), from.imports(), from.leases()};
    if (from.has_node()) welcome.node = Identifier("node name", from.node());
    return welcome;
  }

  CoordinatorMessage Get(const v1::FromCoordinator& from) {
    switch (from.message_case()) {
      case v1::FromCoordinator::kWelcome:
        return Get(from.welcome());
      case v1::FromCoordinator::kBeat:
        return Get(from.beat());
      case v1::FromCoordinator::kStart:
        return Start{Get(from.start().assignment())};
      case v1::FromCoordinator::kStop:
        return Stop{Get(from.stop().round()), Printable(from.stop().reason(), kMaxText), Cause(from.stop().cause()),
                    from.stop().keep_evidence(), from.stop().at_once()};
      case v1::FromCoordinator::kFinish:
        return Finish{Term(from.finish().term()), Get(from.finish().verdict())};
      case v1::FromCoordinator::kRefuse:
        return Refuse{Number("exit code", from.refuse().exit_code(), 0, 255),
                      Printable(from.refuse().reason(), kMaxText)};
      case v1::FromCoordinator::kRedirect:
        return Redirect{Term(from.redirect().term()), Identifier("address", from.redirect().address())};
      case v1::FromCoordinator::kNotice:
        return Notice{Printable(from.notice().text(), kMaxText), from.notice().prepare()};
      case v1::FromCoordinator::kStatus:
        return Get(from.status());
      case v1::FromCoordinator::kImports:
        return Get(from.imports());
      case v1::FromCoordinator::kTelemetryWanted:
        return TelemetryWanted{};
      case v1::FromCoordinator::MESSAGE_NOT_SET:
        break;
    }
    Wrong("a message of no known kind");
    return Beat{};
  }

 private:
  void Wrong(const std::string& what) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(what);
  }

  Status status_;
};

template <typename Proto, typename Message>
StatusOr<Message> Decode(std::string_view bytes, size_t limit, const char* who) {
  if (bytes.size() > limit) {
    return absl::InvalidArgumentError(
        fmt::format("a message of {} has {} bytes, at most {} are allowed", who, bytes.size(), limit));
  }
  Proto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError(fmt::format("a message of {} is not a rendezvous message", who));
  }
  Reader reader;
  Message message = reader.Get(proto);
  if (!reader.status().ok()) return Annotate(reader.status(), fmt::format("a message of {}", who));
  return message;
}

}  // namespace

StatusOr<NodeMessage> DecodeFromNode(std::string_view bytes) {
  return Decode<v1::FromNode, NodeMessage>(bytes, kMaxFromNode, "a node");
}

StatusOr<CoordinatorMessage> DecodeFromCoordinator(std::string_view bytes) {
  return Decode<v1::FromCoordinator, CoordinatorMessage>(bytes, kMaxFromCoordinator, "the coordinator");
}

}  // namespace muster::rendezvous::wire
