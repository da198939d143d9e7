// SPDX-License-Identifier: Apache-2.0
// Messages <-> the bytes of rendezvous.proto. Only wire.cc and wire_decode.cc see protobuf. Pure, any thread.
//
// Decoding checks everything. An empty or unknown message, a negative count, an enum out of range, or an address or
// name that is too long is InvalidArgument, which names the field. Texts for people are cut instead (limits below), on
// both sides: a worker that prints megabytes neither fills the coordinator's memory nor breaks a stream. Times are
// whole milliseconds. Every text is sent as valid UTF-8, except workers' own output, which is sent unchanged.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "rendezvous/messages.h"

namespace muster::rendezvous::wire {

inline constexpr char kAttendMethod[] = "/muster.rendezvous.v1.Rendezvous/Attend";

inline constexpr size_t kMaxFromNode = size_t{1} << 20;          // bytes of one message of a node
inline constexpr size_t kMaxFromCoordinator = size_t{16} << 20;  // of the coordinator: a status of many nodes
inline constexpr size_t kMaxName = 256;                          // names, run ids, addresses: longer is an error
inline constexpr size_t kMaxText = 4096;                         // reasons, worker messages, one line of stderr: cut
inline constexpr size_t kMaxTailLines = 20;
inline constexpr size_t kMaxFailures = 64;                 // per report and verdict; the first ones are kept
inline constexpr size_t kReportText = size_t{512} << 10;   // workers' texts of one report; later failures lose theirs
inline constexpr size_t kVerdictText = size_t{128} << 10;  // the same of one verdict: every node gets it
inline constexpr size_t kMaxStatusLines = 100'000;
inline constexpr size_t kMaxTelemetryRanks = 2048;  // of one node; the first ones are kept

std::string Encode(const NodeMessage& message);
std::string Encode(const CoordinatorMessage& message);

StatusOr<NodeMessage> DecodeFromNode(std::string_view bytes);
StatusOr<CoordinatorMessage> DecodeFromCoordinator(std::string_view bytes);

// `text`, cut to at most `limit` bytes between two characters, with '?' for invalid UTF-8.
std::string Printable(std::string_view text, size_t limit);

}  // namespace muster::rendezvous::wire
