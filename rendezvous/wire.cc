#include "rendezvous/wire.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text.h"
#include "base/version.h"
#include "rendezvous/rendezvous.pb.h"

namespace muster::rendezvous::wire {
namespace {

constexpr uint64_t kMaxTerm = uint64_t{1} << 48;  // far from where counting on would wrap
constexpr int64_t kMaxRound = int64_t{1} << 48;
constexpr int64_t kMaxMillis = int64_t{10} * 365 * 24 * 3600 * 1000;  // ten years: beyond it somebody made it up
constexpr int kMaxCount = 1 << 24;                                    // nodes, slots, ranks, restarts

int64_t Millis(Duration duration) { return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count(); }

// Length of the valid UTF-8 character at the start of `text`, or 0.
size_t CharacterLength(std::string_view text) {
  auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  unsigned char first = byte(0);
  if (first < 0x80) return 1;
  size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xc0) != 0x80) return 0;
  }
  unsigned char second = byte(1);
  bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  bool surrogate = first == 0xed && second >= 0xa0;
  bool beyond = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

std::string Text(std::string_view text) { return Printable(text, kMaxText); }
// Names are never cut when they are sent: two long ones must not become the same. The receiver refuses them.
std::string Name(std::string_view text) { return Printable(text, std::numeric_limits<size_t>::max()); }

// --- to protobuf ---

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
  to->set_pid(from.pid);
  to->set_control_address(Name(from.control_address));
  to->set_store_host(Name(from.store_host));
  to->set_store_port(from.store_port);
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
}

// Takes what is used of `budget`, so that a list of failures stays bounded as a whole.
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
  to->set_error_file(Text(from.error_file));
  to->set_unix_millis(from.unix_millis);
  size_t length = std::min({from.message.size(), kMaxText, budget});
  to->set_message(from.message.data(), length);
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
}

void Put(const Verdict& from, v1::Verdict* to) {
  to->set_exit_code(from.exit_code);
  to->set_reason(Text(from.reason));
  size_t budget = kVerdictText;
  if (from.root_cause) Put(*from.root_cause, to->mutable_root_cause(), budget);
  PutFailures(from.failures, to, budget);
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
  }
}

struct NodeWriter {
  v1::FromNode& to;
  void operator()(const Hello& from) { Put(from, to.mutable_hello()); }
  void operator()(const Beat& from) {
    v1::Beat* beat = to.mutable_beat();
    if (from.round != RoundId{}) Put(from.round, beat->mutable_round());
  }
  void operator()(const Ready& from) {
    Put(from.round, to.mutable_ready()->mutable_round());
    to.mutable_ready()->set_store_port(from.store_port);
  }
  void operator()(const Report& from) { Put(from, to.mutable_report()); }
  void operator()(const Leave& from) { to.mutable_leave()->set_reason(Text(from.reason)); }
  void operator()(const Doubt&) { to.mutable_doubt(); }
  void operator()(const Inspect& from) {
    to.mutable_inspect()->set_run_id(Name(from.run_id));
    to.mutable_inspect()->set_follow(from.follow);
  }
  void operator()(const Supersede& from) {
    to.mutable_supersede()->set_run_id(Name(from.run_id));
    to.mutable_supersede()->set_term(from.term);
    to.mutable_supersede()->set_address(Name(from.address));
  }
};

struct CoordinatorWriter {
  v1::FromCoordinator& to;
  void operator()(const Welcome& from) {
    to.mutable_welcome()->set_term(from.term);
    to.mutable_welcome()->set_beat_interval_ms(Millis(from.beat_interval));
    to.mutable_welcome()->set_coordinator(Printable(from.coordinator, kMaxName));
  }
  void operator()(const Beat&) { to.mutable_beat(); }
  void operator()(const Start& from) { Put(from.assignment, to.mutable_start()->mutable_assignment()); }
  void operator()(const Stop& from) {
    Put(from.round, to.mutable_stop()->mutable_round());
    to.mutable_stop()->set_reason(Text(from.reason));
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
  void operator()(const Notice& from) { to.mutable_notice()->set_text(Text(from.text)); }
  void operator()(const StatusReport& from) { Put(from, to.mutable_status()); }
};

// --- from protobuf ---
// Reads fields one after the other and remembers the first that is wrong; what it returned then is never used.
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
  int Port(const char* field, int value) { return Number(field, value, 0, 65535); }
  Duration Time(const char* field, int64_t millis) {
    return std::chrono::milliseconds(Number(field, millis, int64_t{0}, kMaxMillis));
  }
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
    node.pid = Number("pid", from.pid(), int64_t{0}, std::numeric_limits<int64_t>::max());
    node.control_address = Identifier("control address", from.control_address());
    node.store_host = Identifier("store host", from.store_host());
    node.store_port = Port("store port", from.store_port());
    return node;
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
    failure.message = Bytes(from.message());
    failure.error_file = Printable(from.error_file(), kMaxText);
    size_t lines = static_cast<size_t>(from.stderr_tail_size());
    for (size_t line = lines - std::min(lines, kMaxTailLines); line < lines; ++line) {
      failure.stderr_tail.push_back(Bytes(from.stderr_tail(static_cast<int>(line))));
    }
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
    // Another version may mean something else by the rest: it is refused by its number, with both numbers told.
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
    return hello;
  }

  Verdict Get(const v1::Verdict& from) {
    Verdict verdict;
    verdict.exit_code = Number("exit code", from.exit_code(), 0, 255);
    verdict.reason = Printable(from.reason(), kMaxText);
    if (from.has_root_cause()) verdict.root_cause = Get(from.root_cause());
    verdict.failures = Failures(from.failures());
    return verdict;
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
    }
    return report;
  }

  NodeMessage Get(const v1::FromNode& from) {
    switch (from.message_case()) {
      case v1::FromNode::kHello:
        return Get(from.hello());
      case v1::FromNode::kBeat:
        return from.beat().has_round() ? Beat{Get(from.beat().round())} : Beat{};
      case v1::FromNode::kReady:
        return Ready{Get(from.ready().round()), Port("store port", from.ready().store_port())};
      case v1::FromNode::kReport:
        return Get(from.report());
      case v1::FromNode::kLeave:
        return Leave{Printable(from.leave().reason(), kMaxText)};
      case v1::FromNode::kDoubt:
        return Doubt{};
      case v1::FromNode::kInspect:
        return Inspect{Identifier("run id", from.inspect().run_id()), from.inspect().follow()};
      case v1::FromNode::kSupersede:
        return Supersede{Identifier("run id", from.supersede().run_id()), Term(from.supersede().term()),
                         Identifier("address", from.supersede().address())};
      case v1::FromNode::MESSAGE_NOT_SET:
        break;
    }
    Wrong("a message of no known kind");
    return Beat{};
  }

  CoordinatorMessage Get(const v1::FromCoordinator& from) {
    switch (from.message_case()) {
      case v1::FromCoordinator::kWelcome:
        return Welcome{Term(from.welcome().term()), Time("beat interval", from.welcome().beat_interval_ms()),
                       Printable(from.welcome().coordinator(), kMaxName)};
      case v1::FromCoordinator::kBeat:
        return Beat{};
      case v1::FromCoordinator::kStart:
        return Start{Get(from.start().assignment())};
      case v1::FromCoordinator::kStop:
        return Stop{Get(from.stop().round()), Printable(from.stop().reason(), kMaxText)};
      case v1::FromCoordinator::kFinish:
        return Finish{Term(from.finish().term()), Get(from.finish().verdict())};
      case v1::FromCoordinator::kRefuse:
        return Refuse{Number("exit code", from.refuse().exit_code(), 0, 255),
                      Printable(from.refuse().reason(), kMaxText)};
      case v1::FromCoordinator::kRedirect:
        return Redirect{Term(from.redirect().term()), Identifier("address", from.redirect().address())};
      case v1::FromCoordinator::kNotice:
        return Notice{Printable(from.notice().text(), kMaxText)};
      case v1::FromCoordinator::kStatus:
        return Get(from.status());
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
    return absl::InvalidArgumentError(fmt::format("a message of {} is no rendezvous message", who));
  }
  Reader reader;
  Message message = reader.Get(proto);
  if (!reader.status().ok()) return Annotate(reader.status(), fmt::format("a message of {}", who));
  return message;
}

}  // namespace

std::string Printable(std::string_view text, size_t limit) {
  std::string result;
  result.reserve(std::min(text.size(), limit));
  while (!text.empty() && result.size() < limit) {
    size_t length = CharacterLength(text);
    if (length == 0) {
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

StatusOr<NodeMessage> DecodeFromNode(std::string_view bytes) {
  return Decode<v1::FromNode, NodeMessage>(bytes, kMaxFromNode, "a node");
}

StatusOr<CoordinatorMessage> DecodeFromCoordinator(std::string_view bytes) {
  return Decode<v1::FromCoordinator, CoordinatorMessage>(bytes, kMaxFromCoordinator, "the coordinator");
}

}  // namespace muster::rendezvous::wire
