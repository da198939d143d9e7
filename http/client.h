// HTTP requests by libcurl on the loop: many at a time over kept connections, each with its limits, none blocking.
//
// What libcurl does here: HTTP/1.1, HTTP/2 where it is asked for, TLS, proxies (which one: proxies.h), IPv6, connection
// reuse. What it does not: redirects (a signed or bearer request must not follow to another
// host by itself: who asks decides), retries, decompression (hashes are of the stored bytes).
//
// The client is of its loop's thread only. A sink outlives its transfer, or cancels it; it is not called after End or
// Cancel. Destroying the client ends every transfer without a word.
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
  std::string body;        // of all but GET and HEAD
  bool direct = false;     // past every proxy: what answers is on this machine, and knows it by that
  bool fresh = false;      // by a connection of its own, none that an earlier request has left
  int mark = 0;            // the asker's own; comes back with the answer's head
  bool head_only = false;  // for Ask: a body beyond its limit is not read, and the answer is whole without it
};

struct Limits {
  Duration connect = std::chrono::seconds(10);  // name, TCP and TLS
  // Slower than `slowest` for so long: kStalled; the first byte counts, too. Nothing: an answer may be silent as long
  // as its connection lives.
  std::optional<Duration> silence = std::chrono::seconds(20);
  uint64_t slowest = kSlowest;    // bytes/s
  std::optional<Duration> head;   // from start to status and headers: kStalled
  std::optional<Duration> total;  // from start to end: kStalled; for small answers
};

// For an answer that goes on while things happen, such as a watch of the Kubernetes API: it may say nothing for
// minutes. Its head has to come soon, and all of it ends after `total`. Use it with Options::dead_peer, which notices a
// server that has gone without a word.
inline Limits WatchLimits(Duration total) { return {.silence = {}, .head = std::chrono::seconds(30), .total = total}; }

struct ResponseHead {
  int status = 0;
  Headers headers;  // names in lower case, in the order they came
  std::string url;  // that was asked
  int mark = 0;     // Request's

  std::optional<std::string_view> Find(std::string_view name) const;  // the first by that name
  std::optional<uint64_t> ContentLength() const;                      // bytes; nothing: it is not said, or no number
};

struct TransferEnd {
  enum class Kind {
    kWhole,        // the answer came as its server framed it
    kCut,          // it ended before that, also by a reset
    kUnreachable,  // no name, no route, refused, no proxy
    kStalled,      // silent, or slower than the limit
    kUntrusted,    // TLS: the server's certificate, or ours, or no common protocol
    kRefused,      // the sink did not want it
    kInvalid,      // no HTTP, headers beyond the limit, a URL that is none, a proxy that refuses
  };
  Kind kind = Kind::kWhole;
  std::string what;  // for people: what happened, with the host; empty for kWhole
};

// What takes an answer's body, on the thread that receives it: never on two at once, and it sees what it did before. It
// is let go when the transfer ends or is cancelled, before the sink hears of the end.
class Intake {
 public:
  virtual ~Intake() = default;
  enum class Taken {
    kAll,
    kNotNow,  // nothing of them; the same bytes come again after Resume
    kEnough,  // no more is wanted: the transfer ends kRefused
  };
  virtual Taken Take(std::string_view bytes) = 0;
};

class Sink {
 public:
  virtual ~Sink() = default;
  // Status and headers are there (the final ones, not 1xx). Who takes the body; null: it is not wanted, the transfer
  // ends kRefused.
  virtual std::shared_ptr<Intake> Head(const ResponseHead& head) = 0;
  virtual void End(const TransferEnd& end) = 0;  // the last call
};

struct Options {
  std::string ca_bundle;   // file or folder (ca_places.h); empty: the system's
  std::string ca_folders;  // more of them, with ':' between; they may hold nothing
  std::string ca_remedy;   // what to do where a certificate is not trusted, for people
  // PEM text: trusted in place of all of the above and of the system's.
  std::string ca_pem;
  // PEM texts, both or neither: shown to a server that asks for a client's certificate. They hold for the client's
  // life: who has new ones makes a new client.
  std::string client_certificate;
  std::string client_key;
  bool verify_tls = true;
  // Over TLS, where the server has it. One transfer a connection also then: a reader that waits holds back its own
  // bytes only, and the kernel's buffer is all they wait in.
  bool http2 = false;
  // The environment's are not read here. With one that is spoken to over TLS nothing is read ahead of what libcurl asks
  // for, which is slower: of the two sessions on such a socket libcurl shows one.
  Proxies proxies;
  std::string user_agent = "muster";
  // A peer that acknowledges nothing for so long, be it data or a probe of an idle connection, is gone: kCut. In whole
  // seconds, 10 or more. Nothing: after the kernel's many minutes, unless a limit ends the transfer before.
  std::optional<Duration> dead_peer;
  int connections = 64;    // kept open at most, busy or not
  int buffer = 256 << 10;  // bytes read from a socket at a time, for each busy connection
};

// Whoever asks on behalf of a sink. Ids of transfers that have ended are fine.
class Transport {
 public:
  using Id = uint64_t;
  virtual ~Transport() = default;

  // Never calls the sink before it returns.
  virtual Id Start(const Request& request, const Limits& limits, Sink& sink) = 0;
  virtual void Resume(Id id) = 0;  // after its intake said "not now"
  virtual void Cancel(Id id) = 0;  // its sink hears nothing more
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
  std::function<void(Id)> Canceller() const;  // as Cancel; without effect once the client has gone
  const Options& options() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::http
