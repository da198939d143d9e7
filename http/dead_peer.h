// SPDX-License-Identifier: Apache-2.0
// How the kernel notices that the peer of a TCP connection has disappeared without a packet.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/clock.h"

namespace muster::http {

// The connection ends if the peer acknowledges nothing for `limit`, neither data nor a probe of an idle connection. In
// whole seconds, 10 or more. Sends three probes within `limit`, since an acknowledgement may be lost. A kernel that
// lacks an option keeps its default.
inline void NoticeDeadPeer(int socket, Duration limit) {
  const int seconds = static_cast<int>(std::chrono::ceil<std::chrono::seconds>(limit).count());
  const int on = 1, idle = std::max(1, seconds / 2), between = std::max(1, seconds / 6), milliseconds = seconds * 1000;
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}

}  // namespace muster::http
