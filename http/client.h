// SPDX-License-Identifier: Apache-2.0
// HTTP requests on the loop, by libcurl: many at a time over reused connections, each with its limits, none blocking.
//
// libcurl does HTTP/1.1, HTTP/2 on demand, TLS, proxies (proxies.h chooses one), IPv6 and connection reuse. It does not
// follow redirects, since a signed or bearer request must not go to another host unless the caller decides so. It does
// not retry, and does not decompress, since hashes are of the stored bytes.
//
// Use the client on its loop's thread only. A sink must outlive its transfer or cancel it. It is not called after End
// or Cancel. Destroying the client ends every transfer without calling its sink.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "http/headers.h"
#include "http/proxies.h"
#include "http/retry.h"

namespace muster::http {

struct Request {
  std::string method = "GET";  // GET, HEAD, POST, PUT, PATCH, DELETE
  std::string url;
  Headers headers;
  std::string body;        // not sent with GET and HEAD
  bool direct = false;     // use no proxy: for servers that must see that the request comes from this machine
  bool fresh = false;      // use a new connection, not one that an earlier request has left open
  int mark = 0;            // free for the caller; returned in ResponseHead
  bool head_only = false;  // for Ask: do not read a body above the limit or of unknown length; kWhole without it
};

struct Limits {
  Duration connect = std::chrono::seconds(10);  // name, TCP and TLS
  // kStalled after so long below `slowest`, also before the first byte. nullopt: an answer may be silent as long as its
  // connection lives.
  std::optional<Duration> silence = std::chrono::seconds(20);
  uint64_t slowest = kSlowest;    // bytes/s
  std::optional<Duration> head;   // from start to status and headers: kStalled
  std::optional<Duration> total;  // from start to end: kStalled; for small answers
};

// Limits for an answer that reports events as they happen, such as a watch of the Kubernetes API. It may be silent for
// minutes, but its head must come soon, and it ends after `total`. Use Options::dead_peer too, which notices a server
// that has disappeared.
inline Limits WatchLimits(Duration total) { return {.silence = {}, .head = std::chrono::seconds(30), .total = total}; }

struct ResponseHead {
  int status = 0;
  Headers headers;  // names in lower case, in the order received
  std::string url;  // of the request
  int mark = 0;     // of the request

  std::optional<std::string_view> Find(std::string_view name) const;  // the first header called `name`
  std::optional<uint64_t> ContentLength() const;                      // bytes; nullopt: not given, or no number
};

struct TransferEnd {
  enum class Kind {
    kWhole,        // the whole answer was received
    kCut,          // the connection ended too early, also by a reset
    kUnreachable,  // no address for the name, no route, connection refused: of the server or the proxy
    kStalled,      // silent, or slower than the limit
    kUntrusted,    // TLS: the server's certificate, the client's, or no common protocol
    kRefused,      // the sink refused the body
    kInvalid,      // no HTTP, headers above the limit, an invalid URL, a proxy that refuses
  };
  Kind kind = Kind::kWhole;
  std::string what;  // for people: what happened, with the host; empty for kWhole
};

// Takes an answer's body, on the thread that receives it. Calls never overlap, and each call sees the effects of the
// previous one. The client drops its reference when the transfer ends or is cancelled, before it calls the sink's End.
class Intake {
 public:
  virtual ~Intake() = default;
  enum class Taken {
    kAll,
    kNotNow,  // took none of the bytes; they come again after Resume
    kEnough,  // wants no more: the transfer ends as kRefused
  };
  virtual Taken Take(std::string_view bytes) = 0;
};

class Sink {
 public:
  virtual ~Sink() = default;
  // Called with the final status and headers, not those of 1xx. Returns the intake of the body. Null refuses the body:
  // the transfer ends as kRefused.
  virtual std::shared_ptr<Intake> Head(const ResponseHead& head) = 0;
  virtual void End(const TransferEnd& end) = 0;  // the last call
};

struct Options {
  std::string ca_bundle;   // file or folder (ca_places.h); empty: the system's
  std::string ca_folders;  // further folders, separated by ':'; they may be empty
  std::string ca_remedy;   // advice for people if a certificate is not trusted
  // PEM text of the authorities to trust, instead of all of the above and the system's.
  std::string ca_pem;
  // PEM texts, both or neither, for a server that asks for a client certificate. They cannot change: make a new client
  // for new ones.
  std::string client_certificate;
  std::string client_key;
  bool verify_tls = true;
  // Use HTTP/2 over TLS if the server has it. Each transfer still has its own connection: a slow reader then delays
  // only its own bytes, and they wait only in the kernel's buffer.
  bool http2 = false;
  // The client does not read the environment's proxies itself. With an https:// proxy it does not read ahead, which is
  // slower: such a socket has two TLS sessions, and libcurl shows only one of them.
  Proxies proxies;
  std::string user_agent = "muster";
  // kCut if the peer acknowledges nothing for so long, neither data nor a probe of an idle connection. In whole
  // seconds, 10 or more. nullopt: the kernel's default of many minutes, unless a limit ends the transfer first.
  std::optional<Duration> dead_peer;
  int connections = 64;    // most connections open at a time, busy or not
  int buffer = 256 << 10;  // bytes read from a socket at a time, for each busy connection
};

// Sends requests on behalf of sinks. Resume and Cancel ignore the ids of transfers that have ended.
class Transport {
 public:
  using Id = uint64_t;
  virtual ~Transport() = default;

  // Never calls the sink before it returns.
  virtual Id Start(const Request& request, const Limits& limits, Sink& sink) = 0;
  virtual void Resume(Id id) = 0;  // continues after its intake returned kNotNow
  virtual void Cancel(Id id) = 0;  // the sink is not called after this
};

class Client final : public Transport {
 public:
  Client(boost::asio::io_context& loop, Options options);
  ~Client() override;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Id Start(const Request& request, const Limits& limits, Sink& sink) override;
  void Resume(Id id) override;
  void Cancel(Id id) override;
  std::function<void(Id)> Canceller() const;  // as Cancel; does nothing after the client's destruction
  const Options& options() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::http
