// SPDX-License-Identifier: Apache-2.0
#include "agent/round_store.h"

#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

namespace muster::agent {
namespace {

using boost::asio::ip::tcp;

class RoundStoreTest : public testing::Test {
 protected:
  RoundStoreTest()
      : store_(loop_, options_, nullptr, [this](const store::StoreServer& store) { gone_ = store.counters(); }) {
    options_.job.backend = Backend::kC10d;
    place_.address = "127.0.0.1";
  }
  int Renewed(bool told) {
    auto port = store_.Renew(place_, told);
    EXPECT_TRUE(port.ok()) << port.status();
    return port.value_or(0);
  }
  // Connects to the store, and runs the loop until it has accepted.
  void Visit(int port) {
    tcp::socket client(loop_);
    client.connect({boost::asio::ip::make_address("127.0.0.1"), static_cast<uint16_t>(port)});
    boost::asio::steady_timer limit(loop_, std::chrono::minutes(1));
    bool late = false;
    limit.async_wait([&](const boost::system::error_code& error) { late = !error; });
    while (!late && store_.server()->counters().accepted == 0) loop_.run_one();
    EXPECT_FALSE(late);
    limit.cancel();
    loop_.poll();
  }

  boost::asio::io_context loop_;
  RunOptions options_;
  RendezvousPlace place_;
  std::optional<store::StoreCounters> gone_;
  RoundStore store_;
};

TEST_F(RoundStoreTest, AStoreThatNobodyKnowsIsKept) {
  const int port = Renewed(/*told=*/false);
  const store::StoreServer* const first = store_.server();
  EXPECT_EQ(Renewed(/*told=*/false), port);
  EXPECT_EQ(store_.server(), first);
  EXPECT_FALSE(gone_);
}

TEST_F(RoundStoreTest, AStoreOfARoundIsReplaced) {
  const int port = Renewed(/*told=*/false);
  EXPECT_NE(Renewed(/*told=*/true), port);
  ASSERT_TRUE(gone_);
  EXPECT_EQ(gone_->accepted, 0u);
}

TEST_F(RoundStoreTest, AStoreThatSomebodyHasVisitedIsReplaced) {
  const int port = Renewed(/*told=*/false);
  Visit(port);
  EXPECT_NE(Renewed(/*told=*/false), port);
  ASSERT_TRUE(gone_);
  EXPECT_EQ(gone_->accepted, 1u);
}

}  // namespace
}  // namespace muster::agent
