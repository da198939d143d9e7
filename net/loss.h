// How a connection could not be made, or came to its end.
#pragma once

namespace muster::net {

enum class Loss {
  kRefused,          // that process is gone: its host answered, and nobody listens
  kUnreachable,      // no route, no answer in time
  kUnresolved,       // no address for the name
  kClosed,           // it had been there, and ended
  kSilent,           // it is there, and nothing is heard of the peer for longer than the limit
  kUnauthenticated,  // the peer, or we, do not have the right token or certificate
};

}  // namespace muster::net
