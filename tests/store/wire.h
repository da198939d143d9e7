// SPDX-License-Identifier: Apache-2.0
// Helpers of the store's tests: bytes as hex, requests as text.
#pragma once

#include <string>
#include <string_view>

#include "rendezvous/store/protocol.h"

namespace muster::store {

// "00 CEF7853C" -> its bytes; spaces do not count.
inline std::string Hex(std::string_view text) {
  std::string bytes;
  int high = -1;
  for (char c : text) {
    if (c == ' ') continue;
    int digit = c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
    if (high < 0) {
      high = digit;
    } else {
      bytes.push_back(static_cast<char>(high << 4 | digit));
      high = -1;
    }
  }
  return bytes;
}

// "ADD init/ 1", "WAIT a b", "GETNUMKEYS".
inline std::string Describe(const Request& request) {
  static constexpr const char* kNames[kOps] = {"VALIDATE",  "SET",       "COMPARE_SET", "GET",        "ADD",
                                               "CHECK",     "WAIT",      "GETNUMKEYS",  "DELETE_KEY", "APPEND",
                                               "MULTI_GET", "MULTI_SET", "CANCEL_WAIT", "PING",       "QUEUE_PUSH",
                                               "QUEUE_POP", "QUEUE_LEN", "LIST_KEYS",   "BARRIER",    "WATCH_KEY"};
  std::string text = kNames[static_cast<int>(request.op)];
  for (std::string_view arg : request.args) text.append(" ").append(arg);
  Op op = request.op;
  if (op == Op::kAdd || op == Op::kBarrier || op == Op::kPing || op == Op::kValidate) {
    text += " " + std::to_string(request.number);
  }
  return text;
}

}  // namespace muster::store
