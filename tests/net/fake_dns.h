// SPDX-License-Identifier: Apache-2.0
// A DNS server on the test's loop, UDP and TCP on one port. A function of the test gives the answers.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace muster::net {

class FakeDns {
 public:
  struct Question {
    std::string name;  // without final dot
    bool v4 = true;    // A, else AAAA
    bool tcp = false;
    int nth = 1;  // how often this name and type were asked for, this time included
  };
  struct Reply {
    bool silent = false;
    int rcode = 0;  // 2: SERVFAIL, 3: NXDOMAIN
    std::vector<std::string> addresses = {};
    bool truncated = false;
  };
  using Script = std::function<Reply(const Question&)>;

  static Reply Silence() { return {.silent = true}; }
  static Reply Error(int rcode) { return {.rcode = rcode}; }
  static Reply Has(std::vector<std::string> addresses) { return {.addresses = std::move(addresses)}; }

  // Port 0: the kernel chooses.
  FakeDns(boost::asio::io_context& loop, Script script, const std::string& host = "127.0.0.1", int port = 0)
      : script_(std::move(script)), udp_(loop), acceptor_(loop) {
    const auto address = boost::asio::ip::make_address(host);
    for (;;) {  // until a port is free for both
      acceptor_ = Tcp::acceptor(loop, Tcp::endpoint(address, static_cast<uint16_t>(port)));
      udp_ = Udp::socket(loop, Udp::v4());
      boost::system::error_code error;
      udp_.bind(Udp::endpoint(address, acceptor_.local_endpoint().port()), error);
      if (!error) break;
    }
    Receive();
    Accept();
  }

  int port() const { return udp_.local_endpoint().port(); }
  std::string address() const {
    return fmt::format("{}:{}", udp_.local_endpoint().address().to_string(), udp_.local_endpoint().port());
  }
  std::vector<std::string> asked;  // "A pod-0.example", in order

 private:
  using Udp = boost::asio::ip::udp;
  using Tcp = boost::asio::ip::tcp;
  struct Connection {
    explicit Connection(Tcp::socket open) : socket(std::move(open)) {}
    Tcp::socket socket;
    std::array<unsigned char, 2> size{};
    std::string question;
    std::string answer;
  };

  void Receive() {
    udp_.async_receive_from(boost::asio::buffer(datagram_), from_,
                            [this](const boost::system::error_code& error, size_t size) {
                              if (error) return;
                              std::string answer = Answer(std::string(datagram_.data(), size), false);
                              boost::system::error_code ignored;
                              if (!answer.empty()) udp_.send_to(boost::asio::buffer(answer), from_, 0, ignored);
                              Receive();
                            });
  }

  void Accept() {
    acceptor_.async_accept([this](const boost::system::error_code& error, Tcp::socket socket) {
      if (error) return;
      Read(std::make_shared<Connection>(std::move(socket)));
      Accept();
    });
  }

  void Read(const std::shared_ptr<Connection>& open) {
    boost::asio::async_read(
        open->socket, boost::asio::buffer(open->size), [this, open](const boost::system::error_code& error, size_t) {
          if (error) return;
          open->question.resize(static_cast<size_t>(open->size[0]) << 8 | open->size[1]);
          boost::asio::async_read(
              open->socket, boost::asio::buffer(open->question),
              [this, open](const boost::system::error_code& failed, size_t) {
                if (failed) return;
                std::string answer = Answer(open->question, true);
                open->answer = {static_cast<char>(answer.size() >> 8), static_cast<char>(answer.size() & 0xff)};
                open->answer += answer;
                boost::system::error_code ignored;
                boost::asio::write(open->socket, boost::asio::buffer(open->answer), ignored);
                Read(open);
              });
        });
  }

  // The answer repeats header and question. A name ends with a zero byte; four bytes of type and class follow.
  std::string Answer(const std::string& message, bool tcp) {
    Question question;
    size_t end = 12;
    while (end < message.size() && message[end] != 0) {
      const size_t length = static_cast<unsigned char>(message[end]);
      question.name += (question.name.empty() ? "" : ".") + message.substr(end + 1, length);
      end += length + 1;
    }
    if (end + 5 > message.size()) return {};
    question.v4 = message[end + 2] == 1;
    question.tcp = tcp;
    end += 5;
    asked.push_back((question.v4 ? "A " : "AAAA ") + question.name);
    question.nth = ++counts_[asked.back()];
    const Reply reply = script_(question);
    if (reply.silent) return {};
    std::string answer = message.substr(0, end);
    answer[2] = static_cast<char>(reply.truncated ? 0x83 : 0x81);
    answer[3] = static_cast<char>(0x80 | reply.rcode);
    const size_t count = reply.truncated ? 0 : reply.addresses.size();
    answer[6] = 0;
    answer[7] = static_cast<char>(count);
    for (int at = 8; at < 12; ++at) answer[at] = 0;
    for (size_t at = 0; at < count; ++at) {
      const auto address = boost::asio::ip::make_address(reply.addresses[at]);
      std::string bytes;
      if (address.is_v4()) {
        for (unsigned char byte : address.to_v4().to_bytes()) bytes += static_cast<char>(byte);
      } else {
        for (unsigned char byte : address.to_v6().to_bytes()) bytes += static_cast<char>(byte);
      }
      answer += std::string("\xc0\x0c\x00", 3) + (address.is_v4() ? '\x01' : '\x1c');
      answer += std::string("\x00\x01\x00\x00\x00\x3c\x00", 7) + static_cast<char>(bytes.size()) + bytes;
    }
    return answer;
  }

  const Script script_;
  std::map<std::string, int> counts_;
  Udp::socket udp_;
  Udp::endpoint from_;
  std::array<char, 1500> datagram_;
  Tcp::acceptor acceptor_;
};

}  // namespace muster::net
