// SPDX-License-Identifier: Apache-2.0
// Why a connection could not be made, or why it ended.
#pragma once

namespace muster::net {

enum class Loss {
  kRefused,          // the process is gone: its host answered that nothing listens on the port
  kUnreachable,      // no route, no answer in time
  kUnresolved,       // no address for the name
  kClosed,           // the connection was open and has ended
  kSilent,           // the connection is open, but nothing came from the peer for longer than the limit
  kUnauthenticated,  // the peer or this process does not have the right token or certificate
};

}  // namespace muster::net
