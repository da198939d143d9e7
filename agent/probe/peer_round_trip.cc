// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/peer_round_trip.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "base/host_names.h"
#include "base/text.h"
#include "net/resolver.h"

namespace muster::agent {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr int kTries = 3;

class Peer {
 public:
  Peer(asio::io_context& loop, const net::HostPort& peer) : peer_(peer), resolver_(loop), socket_(loop) {
    figure_.name = "round trip";
    figure_.where = JoinHostPort(peer.host, peer.port);
    figure_.why = "no answer in time";
  }

  void Begin(Duration limit) {
    resolver_.Resolve(peer_.host, limit, [this](auto addresses) {
      if (!addresses.ok()) {
        figure_.why = Message(addresses.status());
        return;
      }
      std::vector<std::string> texts;
      for (const auto& address : *addresses) texts.push_back(address.to_string());
      if (MeansThisMachine(peer_.host, ThisMachine(), texts)) {
        figure_.why = "it is this machine";
        return;
      }
      address_ = tcp::endpoint(addresses->front(), static_cast<uint16_t>(peer_.port));
      Try();
    });
  }

  const MachineFigure& figure() const { return figure_; }

 private:
  void Try() {
    boost::system::error_code ignored;
    socket_.close(ignored);
    TimePoint began = MonotonicClock::now();
    socket_.async_connect(address_, [this, began](boost::system::error_code error) {
      if (error && error != asio::error::connection_refused) {
        if (!figure_.value && error != asio::error::operation_aborted) figure_.why = error.message();
        return;
      }
      double took = std::chrono::duration<double, std::milli>(MonotonicClock::now() - began).count();
      figure_.value = std::min(figure_.value.value_or(took), took);
      figure_.why = error ? "refused, which counts as an answer" : "";
      if (++tries_ < kTries) Try();
    });
  }

  const net::HostPort peer_;
  net::Resolver resolver_;
  tcp::socket socket_;
  tcp::endpoint address_;
  MachineFigure figure_;
  int tries_ = 0;
};

}  // namespace

std::vector<MachineFigure> MeasurePeers(const std::vector<net::HostPort>& peers, TimePoint until) {
  asio::io_context loop(1);
  std::vector<std::unique_ptr<Peer>> all;
  for (const net::HostPort& peer : peers) {
    all.push_back(std::make_unique<Peer>(loop, peer));
    all.back()->Begin(std::max(until - MonotonicClock::now(), Duration(1)));
  }
  loop.run_until(until);  // returns earlier if all peers are done
  std::vector<MachineFigure> figures;
  for (const auto& peer : all) figures.push_back(peer->figure());
  return figures;
}

}  // namespace muster::agent
