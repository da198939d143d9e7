// SPDX-License-Identifier: Apache-2.0
// Something on 127.0.0.1 that is asked as an agent, on the loop of its clients. It sends given bytes to each
// connection, whatever comes, and knows which connections are open.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace muster::controller {

class RawAgent {
 public:
  struct Answer {
    std::vector<std::string> bytes;  // each after the one before was sent
    bool closes = false;             // the connection, after the last of them
  };

  RawAgent(boost::asio::io_context& loop, Answer answer) : state_(std::make_shared<State>(loop, std::move(answer))) {
    Accept(state_);
  }
  ~RawAgent() { state_->acceptor.close(); }
  RawAgent(const RawAgent&) = delete;
  RawAgent& operator=(const RawAgent&) = delete;

  std::string address() const { return fmt::format("127.0.0.1:{}", state_->acceptor.local_endpoint().port()); }
  std::string url() const { return fmt::format("http://{}/status?after=a1&wait=60", address()); }
  const std::string& request() const { return state_->request; }  // the bytes of all requests
  int accepted() const { return state_->accepted; }
  int open() const { return state_->accepted - state_->closed; }  // connections that the client has not closed
  bool sent() const { return state_->sent; }                      // all bytes to some client

 private:
  using tcp = boost::asio::ip::tcp;
  using error_code = boost::system::error_code;
  struct State {
    State(boost::asio::io_context& loop, Answer its)
        : acceptor(loop, {boost::asio::ip::address_v4::loopback(), 0}), answer(std::move(its)) {}
    tcp::acceptor acceptor;
    const Answer answer;
    std::string request;
    int accepted = 0, closed = 0;
    bool sent = false;
  };
  struct Connection {
    explicit Connection(tcp::socket its) : socket(std::move(its)) {}
    tcp::socket socket;
    std::array<char, 4096> buffer;
  };

  static void Accept(const std::shared_ptr<State>& state) {
    state->acceptor.async_accept([state](error_code error, tcp::socket socket) {
      if (error) return;
      ++state->accepted;
      const auto connection = std::make_shared<Connection>(std::move(socket));
      Read(state, connection);
      Send(state, connection, 0);
      Accept(state);
    });
  }
  static void Read(const std::shared_ptr<State>& state, const std::shared_ptr<Connection>& connection) {
    connection->socket.async_read_some(boost::asio::buffer(connection->buffer),
                                       [state, connection](error_code error, size_t size) {
                                         state->request.append(connection->buffer.data(), size);
                                         error ? static_cast<void>(++state->closed) : Read(state, connection);
                                       });
  }
  static void Send(const std::shared_ptr<State>& state, const std::shared_ptr<Connection>& connection, size_t at) {
    if (at == state->answer.bytes.size()) {
      state->sent = true;
      if (state->answer.closes) connection->socket.shutdown(tcp::socket::shutdown_send);
      return;
    }
    boost::asio::async_write(connection->socket, boost::asio::buffer(state->answer.bytes[at]),
                             [state, connection, at](error_code error, size_t) {
                               if (!error) Send(state, connection, at + 1);
                             });
  }

  const std::shared_ptr<State> state_;
};

}  // namespace muster::controller
