// SPDX-License-Identifier: Apache-2.0
// rendezvous and rsh: the store's protocol, messages of nodes and of the remote shell.
#include "base/text.h"
#include "rendezvous/store/commands.h"
#include "rendezvous/wire.h"
#include "rsh/protocol.h"
#include "rsh/rsh_arguments.h"
#include "tests/linear/linear.h"

namespace muster {
namespace {

constexpr std::string_view kValidate("\x00\xCE\xF7\x85\x3C", 5);

// The first byte, not sent: how many bytes come at a time; 0: all at once. Someone watches the key "watched".
void Play(const std::string& input) {
  using namespace store;
  KeySpace keys;
  keys.Watch(1, "watched");
  Parser parser;
  Request request;
  const size_t step = input[0] == 0 ? input.size() : static_cast<size_t>(input[0]);
  std::string_view left = std::string_view(input).substr(1);
  while (!left.empty()) {
    std::string_view piece = left.substr(0, step);
    left.remove_prefix(piece.size());
    while (parser.Next(&piece, &request) == Parser::Result::kRequest) {
      Output output;
      if (*Execute(&request, 0, &keys, &output) != 0) return;
    }
  }
}

std::string Start(char step) { return step + std::string(kValidate); }

std::string Call(store::Op op, std::initializer_list<std::string_view> texts) {
  std::string call;
  store::PutOp(&call, op);
  for (const std::string_view text : texts) store::PutString(&call, text);
  return call;
}

auto Sets(char step) {
  return Numbers(
      [](size_t number) {
        return Call(store::Op::kSet, {fmt::format("key{}", number), "value"});
      },
      Start(step));
}

std::string Keys(store::Op op, size_t parts) {
  std::vector<std::string> keys;
  for (size_t number = 0; number < parts; ++number) keys.push_back(fmt::format("key{}", number));
  std::string call = Start(0);
  store::PutKeys(&call, op, keys);
  return call;
}

std::string Pairs(size_t parts) {
  std::string text = Start(0) + Call(store::Op::kSet, {"watched", std::string(20 * parts, 'x')});
  store::PutOp(&text, store::Op::kMultiSet);
  store::PutNumber<uint64_t>(&text, parts);
  for (size_t number = 0; number < parts; ++number) {
    store::PutString(&text, "watched");
    store::PutString(&text, "y");
  }
  return text;
}

void FromNode(const std::string& bytes) { (void)rendezvous::wire::DecodeFromNode(bytes); }
void FromCoordinator(const std::string& bytes) { (void)rendezvous::wire::DecodeFromCoordinator(bytes); }

std::string StatusOf(size_t nodes) {
  rendezvous::StatusReport report{.run_id = "run", .phase = "running"};
  for (size_t number = 0; number < nodes; ++number) {
    report.nodes.push_back({.node = fmt::format("node-{}", number), .host = "host", .state = "running"});
  }
  return rendezvous::wire::Encode(report);
}

// In slices of 50 bytes.
void FromShell(const std::string& text) {
  rsh::Bytes slices;
  for (size_t at = 0; at < text.size(); at += 50) slices.emplace_back(text.substr(at, 50));
  const grpc::ByteBuffer buffer(slices.data(), slices.size());
  (void)rsh::DecodeFromCaller(buffer);
  (void)rsh::DecodeFromPod(buffer);
  (void)rsh::DecodeFromLauncher(buffer);
  (void)rsh::DecodeFromWorker(buffer);
}

std::string Joined(const grpc::ByteBuffer& buffer) {
  rsh::Bytes slices;
  if (!buffer.Dump(&slices).ok()) return "";
  return net::Joined(slices);
}

void Arguments(const std::string& text) {
  std::vector<std::string> arguments;
  for (const std::string_view line : Split(text, '\n')) arguments.emplace_back(line);
  (void)rsh::ParseRshArguments(arguments);
}

const std::vector<LinearRow> kRows = {
    {"store", "Sets", Sets(0), Play},
    {"store", "Pieces", Sets(3), Play},
    {"store", "LongValue",
     [](size_t parts) {
       return Start(100) + Call(store::Op::kSet, {"key", std::string(100 * parts, 'x')});
     },
     Play},
    {"store", "Waits", [](size_t parts) { return Keys(store::Op::kWait, parts); }, Play},
    {"store", "Gets", [](size_t parts) { return Keys(store::Op::kMultiGet, parts); }, Play},
    {"store", "Appends",
     Numbers(
         [](size_t) {
           return Call(store::Op::kAppend, {"key", "value"});
         },
         Start(0)),
     Play},
    {"store", "Queue",
     Numbers(
         [](size_t) {
           return Call(store::Op::kQueuePush, {"key", "value"});
         },
         Start(0)),
     Play},
    {"store", "WatchedPairs", Pairs, Play},
    {"wire", "Status", StatusOf, FromCoordinator},
    {"wire", "UnknownFields", Repeats("\x78\x01"), FromNode},
    {"rsh_wire", "Input",
     [](size_t parts) {
       return Joined(Encode(rsh::FromCaller(rsh::Input{{grpc::Slice(std::string(50 * parts, 'x'))}})));
     },
     FromShell},
    {"rsh_wire", "Command",
     [](size_t parts) {
       return Joined(Encode(rsh::FromCaller(rsh::Open{std::string(50 * parts, 'x'), "host"})));
     },
     FromShell},
    {"rsh_wire", "UnknownFields", Repeats("\x78\x01"), FromShell},
    {"rsh_arguments", "Options", Repeats("-x\n-oA=b\n", "", "host\ncommand"), Arguments},
    {"rsh_arguments", "Cluster", Repeats("x", "-", "\nhost\ncommand"), Arguments},
    {"rsh_arguments", "Command", Repeats("word\n", "host\n"), Arguments},
};

INSTANTIATE_TEST_SUITE_P(Rendezvous, Linear, testing::ValuesIn(kRows), NameOfRow);

}  // namespace
}  // namespace muster
