// SPDX-License-Identifier: Apache-2.0
// An HTTP server on 127.0.0.1, on the loop of its clients. It answers by a script, which may cut a connection.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "controller/kube/client/cluster_access.h"

namespace muster::controller {

class ScriptServer {
 public:
  struct Asked {
    std::string method, target, body, authorization, content_type, accept;
    std::string line() const { return method + " " + target; }
    Json json() const { return Json::parse(body, nullptr, false); }
  };
  struct Reply {
    int status = 200;
    std::string type = "application/json";
    std::string headers;  // further headers, each with its "\r\n"
    std::string body;
    std::vector<std::string> chunks;  // sent as HTTP chunks instead of `body`
    // kCut: closes the connection; kStay: keeps it open and sends nothing more; kSilent: closes it without an answer.
    enum class Then { kEnd, kCut, kStay, kSilent } then = Then::kEnd;
  };
  using Script = std::function<Reply(const Asked&)>;

  ScriptServer(boost::asio::io_context& loop, Script script)
      : acceptor_(loop, {boost::asio::ip::address_v4::loopback(), 0}), script_(std::move(script)) {
    Accept();
  }
  ~ScriptServer() { Stop(); }
  ScriptServer(const ScriptServer&) = delete;
  ScriptServer& operator=(const ScriptServer&) = delete;

  ClusterAccess access() const {
    ClusterAccess access;
    access.server = fmt::format("http://127.0.0.1:{}", acceptor_.local_endpoint().port());
    return access;
  }
  const std::vector<Asked>& asked() const { return asked_; }
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const Asked& one : asked_) lines.push_back(one.line());
    return lines;
  }
  void Stop() {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    for (const auto& connection : connections_) connection->socket.close(ignored);
  }

  static Reply Of(int status, const Json& json, std::string headers = "") {
    return {.status = status, .headers = std::move(headers), .body = WriteJson(json)};
  }
  static Reply Refusal(int status, const std::string& reason, std::string headers = "") {
    return Of(status,
              {{"kind", "Status"}, {"apiVersion", "v1"}, {"reason", reason}, {"message", "no"}, {"code", status}},
              std::move(headers));
  }

 private:
  struct Connection {
    explicit Connection(boost::asio::ip::tcp::socket its) : socket(std::move(its)) {}
    boost::asio::ip::tcp::socket socket;
    boost::beast::flat_buffer buffer;
    boost::beast::http::request<boost::beast::http::string_body> request;
    std::string answer;
  };

  std::weak_ptr<bool> Alive() const { return alive_; }
  void Accept() {
    acceptor_.async_accept(
        [this, alive = Alive()](boost::system::error_code error, boost::asio::ip::tcp::socket socket) {
          if (error || alive.expired()) return;
          connections_.push_back(std::make_shared<Connection>(std::move(socket)));
          Read(connections_.back());
          Accept();
        });
  }
  void Read(const std::shared_ptr<Connection>& connection) {
    connection->request = {};
    boost::beast::http::async_read(connection->socket, connection->buffer, connection->request,
                                   [this, connection, alive = Alive()](boost::system::error_code error, size_t) {
                                     if (!error && !alive.expired()) Answer(connection);
                                   });
  }
  void Answer(const std::shared_ptr<Connection>& connection) {
    const auto& request = connection->request;
    const auto text = [](auto view) { return std::string(view.data(), view.size()); };
    asked_.push_back({text(request.method_string()), text(request.target()), request.body(),
                      text(request["authorization"]), text(request["content-type"]), text(request["accept"])});
    const Reply reply = script_(Asked(asked_.back()));
    std::string& answer = connection->answer;
    answer = fmt::format("HTTP/1.1 {} Answer\r\nContent-Type: {}\r\n{}", reply.status, reply.type, reply.headers);
    if (!reply.chunks.empty()) {
      answer += "Transfer-Encoding: chunked\r\n\r\n";
      for (const std::string& chunk : reply.chunks) answer += fmt::format("{:x}\r\n{}\r\n", chunk.size(), chunk);
      if (reply.then == Reply::Then::kEnd) answer += "0\r\n\r\n";
    } else {
      answer += fmt::format("Content-Length: {}\r\n\r\n{}", reply.body.size(), reply.body);
    }
    if (reply.then == Reply::Then::kStay && reply.chunks.empty()) return;
    if (reply.then == Reply::Then::kSilent) answer.clear();
    boost::asio::async_write(
        connection->socket, boost::asio::buffer(answer),
        [this, connection, then = reply.then, alive = Alive()](boost::system::error_code error, size_t) {
          if (error || alive.expired() || then == Reply::Then::kStay) return;
          if (then == Reply::Then::kEnd) return Read(connection);
          connection->socket.close(error);
        });
  }

  boost::asio::ip::tcp::acceptor acceptor_;
  const Script script_;
  std::vector<Asked> asked_;
  std::vector<std::shared_ptr<Connection>> connections_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Runs the loop until `done`. False: not within 60 s.
inline bool RunUntil(boost::asio::io_context& loop, const std::function<bool()>& done) {
  const TimePoint deadline = MonotonicClock::now() + std::chrono::seconds(60);
  loop.restart();
  while (!done() && MonotonicClock::now() < deadline) {
    if (loop.run_one_until(deadline) == 0) break;
  }
  return done();
}

}  // namespace muster::controller
