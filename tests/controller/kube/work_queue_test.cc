// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/work_queue.h"

#include <gmock/gmock.h>

#include <optional>

#include "tests/controller/kube/script_server.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using Outcome = WorkQueue::Outcome;

class WorkQueueTest : public testing::Test {
 protected:
  void Make(WorkQueue::Options options, WorkQueue::Work work) { queue_.emplace(loop_, options, std::move(work)); }
  bool Until(const std::function<bool()>& done) { return RunUntil(loop_, done); }

  boost::asio::io_context loop_;
  std::vector<std::string> worked_;
  std::optional<WorkQueue> queue_;
};

TEST_F(WorkQueueTest, WorksInOrderAndNeverAtOnce) {
  Make({}, [&](const std::string& key, const WorkQueue::Done& done) {
    worked_.push_back(key);
    done(Outcome::kDone, {});
    done(Outcome::kAgain, {});  // ignored: only the first call counts
  });
  for (const char* key : {"b", "a", "b"}) queue_->Add(key);
  EXPECT_THAT(worked_, ElementsAre());
  EXPECT_EQ(queue_->size(), 2U);
  EXPECT_TRUE(Until([&] { return queue_->size() == 0; }));
  EXPECT_THAT(worked_, ElementsAre("b", "a"));
}

TEST_F(WorkQueueTest, AKeyWaitsForItsOwnWork) {
  WorkQueue::Done later;
  Make({}, [&](const std::string& key, WorkQueue::Done done) {
    worked_.push_back(key);
    key == "slow" ? later = std::move(done), void() : done(Outcome::kDone, {});
  });
  queue_->Add("slow");
  ASSERT_TRUE(Until([&] { return static_cast<bool>(later); }));
  queue_->Add("slow");
  queue_->Add("quick");
  ASSERT_TRUE(Until([&] { return worked_.size() == 2; }));
  EXPECT_THAT(worked_, ElementsAre("slow", "quick"));
  std::exchange(later, nullptr)(Outcome::kDone, {});
  ASSERT_TRUE(Until([&] { return worked_.size() == 3; }));
  EXPECT_EQ(worked_.back(), "slow");
}

TEST_F(WorkQueueTest, WhatFailsIsWorkedOnAgain) {
  Make({.first = std::chrono::milliseconds(1)}, [&](const std::string& key, const WorkQueue::Done& done) {
    worked_.push_back(key);
    done(worked_.size() < 4 ? Outcome::kAgain : Outcome::kDone, {});
  });
  queue_->Add("a");
  EXPECT_TRUE(Until([&] { return worked_.size() == 4; }));
}

TEST_F(WorkQueueTest, WhatIsPutOffComesInTimeOrNever) {
  Make({}, [&](const std::string& key, const WorkQueue::Done& done) {
    worked_.push_back(key);
    done(Outcome::kDone, {});
  });
  queue_->AddAfter("late", std::chrono::hours(1));
  queue_->AddAfter("late", std::chrono::milliseconds(2));
  queue_->AddAfter("gone", std::chrono::milliseconds(1));
  queue_->AddAfter("never", std::chrono::hours(1));
  queue_->Forget("gone");
  EXPECT_TRUE(Until([&] { return !worked_.empty(); }));
  EXPECT_THAT(worked_, ElementsAre("late"));
}

TEST_F(WorkQueueTest, WorkMayEndTheQueue) {
  WorkQueue::Done kept;
  Make({}, [&](const std::string& key, WorkQueue::Done done) {
    worked_.push_back(key);
    kept = std::move(done);
    queue_.reset();
  });
  queue_->Add("a");
  queue_->Add("b");
  ASSERT_TRUE(Until([&] { return !queue_; }));
  kept(Outcome::kAgain, {});
  loop_.restart();
  loop_.poll();
  EXPECT_THAT(worked_, ElementsAre("a"));
}

}  // namespace
}  // namespace muster::controller
