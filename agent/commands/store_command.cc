// SPDX-License-Identifier: Apache-2.0
// `muster store --host H --port P`: a c10d TCPStore alone.
#include "rendezvous/store/server.h"

#include <boost/asio/io_context.hpp>

#include "agent/commands/arguments.h"
#include "agent/commands/command_line.h"
#include "agent/commands/commands.h"
#include "agent/flags/flag_values.h"
#include "base/exit_codes.h"
#include "base/log.h"
#include "base/text.h"

namespace muster::agent {

int StoreCommand(const Call& call) {
  Arguments arguments("Serve a c10d TCPStore alone", "muster store");
  std::string host = "127.0.0.1";
  int port = 29500;
  arguments.Text("--host", &host, "numeric address to listen on; '' is every address", {.shows_default = true});
  arguments.Port("--port", &port, "0: the kernel chooses");
  LogFlags log_flags;
  AddLogFlags(arguments, &log_flags);
  if (auto end = arguments.Parse(call)) return *end;
  if (auto end = ConfigureLog(log_flags)) return *end;
  auto address = ParseListenHost(host);
  if (!address.ok()) {
    log::Error(fmt::format("--host: {}", Message(address.status())));
    return kExitUsage;
  }

  boost::asio::io_context loop(1);
  auto store = store::StoreServer::Listen(loop, *address, port);
  if (!store.ok()) {
    log::Error(Message(store.status()));
    return kExitBadConfiguration;
  }
  return ServeUntilSignal(loop, *address, (*store)->port());
}

}  // namespace muster::agent
