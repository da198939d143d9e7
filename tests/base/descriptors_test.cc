// SPDX-License-Identifier: Apache-2.0
#include "base/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

namespace muster {
namespace {

TEST(Descriptors, AreKeptBackFromTheLimit) {
  int open_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int next = dup(open_fd);
  close(next);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  struct Row {
    int free;  // descriptors left below the limit
    int keep;
    int more;
    bool left;
  };
  std::vector<int> taken;  // so that a half and an eighth of the limit are numbers of their own
  while (next < 200) {
    taken.push_back(next);
    ASSERT_EQ(dup(open_fd), next);
    next = dup(open_fd);
    close(next);
  }
  for (const Row& row :
       {Row{1, 0, 0, true}, Row{1, 1, 0, false}, Row{2, 1, 0, true}, Row{4, 4, 0, false}, Row{5, 4, 0, true},
        Row{5, 2, 3, false}, Row{6, 2, 3, true}, Row{0, 1, 0, false}, Row{200, 1000, 0, false}, Row{201, 1000, 0, true},
        Row{200, 0, 1000, true}, Row{28, 0, 1000, false}, Row{29, 0, 1000, true}}) {
    rlimit limit{static_cast<rlim_t>(next + row.free), before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    bool left = DescriptorsLeft(
        open_fd, [&] { return row.keep; }, row.more);
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_EQ(left, row.left) << row.free << " free, " << row.keep << " and " << row.more << " kept";
  }
  EXPECT_TRUE(DescriptorsLeft(open_fd, nullptr));
  for (int fd : taken) close(fd);
  close(open_fd);
}

TEST(Descriptors, AClosedStandardStreamIsNobodyElses) {
  EXPECT_EXIT(
      {
        close(0);
        close(1);
        FillStandardStreams();
        FillStandardStreams();  // nothing is left to do
        char byte = 0;
        const bool same = read(0, &byte, 1) == 0 && write(1, "x", 1) == 1;
        _exit(same && (fcntl(0, F_GETFD) & FD_CLOEXEC) == 0 && dup(0) > 2 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Descriptors, OfAPipeAreClosedOnExec) {
  auto pipe = MakePipe();
  ASSERT_TRUE(pipe.ok()) << pipe.status();
  for (const Descriptor* end : {&pipe->reading, &pipe->writing}) {
    EXPECT_EQ(fcntl(end->get(), F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(fcntl(end->get(), F_GETFL) & O_NONBLOCK, 0);
  }
  ASSERT_EQ(write(pipe->writing.get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(pipe->reading.get(), &byte, 1), 1);
}

TEST(Descriptors, OfAPipeBeyondTheLimitAreAnError) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto pipe = MakePipe();
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(pipe.ok());
  EXPECT_NE(pipe.status().message().find("opening a pipe"), std::string::npos) << pipe.status();
}

TEST(Descriptors, AreReadyByTheirDeadlineOrNot) {
  auto pipe = MakePipe();
  ASSERT_TRUE(pipe.ok()) << pipe.status();
  auto& [reading, writing] = *pipe;
  EXPECT_FALSE(ReadyBy(reading.get(), POLLIN, MonotonicClock::now()));
  EXPECT_FALSE(ReadyBy(reading.get(), POLLIN, MonotonicClock::now() - std::chrono::hours(1)));
  ASSERT_EQ(write(writing.get(), "x", 1), 1);
  EXPECT_TRUE(ReadyBy(reading.get(), POLLIN, TimePoint::max() - std::chrono::hours(1)));
  reading.Close();
  EXPECT_TRUE(ReadyBy(writing.get(), POLLOUT, MonotonicClock::now()));  // broken: the next write returns the error
}

}  // namespace
}  // namespace muster
