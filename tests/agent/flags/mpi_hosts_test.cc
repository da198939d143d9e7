// SPDX-License-Identifier: Apache-2.0
// Host files of MPI runtimes: both dialects are read and written; what is refused.
#include "agent/flags/mpi_hosts.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::agent {
namespace {

using ::testing::HasSubstr;

// "name*slots name*slots", or "error: ...".
std::string Read(std::string_view text, int default_slots = 1) {
  auto hosts = ParseMpiHosts(text, default_slots);
  if (!hosts.ok()) return "error: " + std::string(hosts.status().message());
  std::vector<std::string> parts;
  for (const MpiHost& host : *hosts) parts.push_back(fmt::format("{}*{}", host.name, host.slots));
  return Join(parts, " ");
}

TEST(MpiHosts, AreRead) {
  const struct {
    std::string_view text, hosts;
  } rows[] = {
      {"a", "a*1"},
      {"a slots=2\nb.sub.ns.svc slots=3\n", "a*2 b.sub.ns.svc*3"},
      {"a:2\nb:3", "a*2 b*3"},
      {"a:2,b slots=3, c ,,d:1,", "a*2 b*3 c*1 d*1"},
      {"# all\n\n  \t\na slots=2 # two\n#b\n", "a*2"},
      {"a slots=2\r\nb\r\n", "a*2 b*1"},
      {"a slots = 2 max_slots= 4", "a*2"},
      {"a cpu=3\nb count=4", "a*3 b*4"},
      {"a max-slots=3\nb max_slots=4 slots=1", "a*3 b*1"},
      {"u@a slots=1\nu@x@b:2", "a*1 b*2"},
      {"a user_name=joe slots=2\nb:2 binding=core:0 user=joe\nc port=2222", "a*2 b*2 c*1"},
      {"10.0.0.7 slots=2\nA_b-c:3\n2048:1", "10.0.0.7*2 A_b-c*3 2048*1"},
      {"fd00::2 slots=2\n[fd00::3]:4\n[fd00::4]\n::1", "fd00::2*2 fd00::3*4 fd00::4*1 ::1*1"},
      {"a slots=2\nb\na slots=3", "a*5 b*1"},
      {"a\na\nb\na", "a*3 b*1"},
      {"a slots=2\na", "a*3"},
      {"a:65536", "a*65536"},
  };
  for (const auto& row : rows) EXPECT_EQ(Read(row.text), row.hosts) << row.text;
}

TEST(MpiHosts, WithoutSlotsHaveTheDefault) {
  EXPECT_EQ(Read("a\nb slots=2\nc\nc\n", 8), "a*8 b*2 c*2");
  EXPECT_EQ(Read("a max_slots=2", 8), "a*2");
}

TEST(MpiHosts, ThatAreNoneAreNamed) {
  const struct {
    std::string_view text, error;
  } rows[] = {
      {"", "there is no host in it; write HOST slots=N, one a line"},
      {"# nothing\n , \n", "there is no host in it"},
      {"a\n\nb:x",
       "line 3, 'b:x': the number after the colon is a whole number from 1 to 65536; write HOST slots=N or"},
      {"a:", "line 1, 'a:': the number after the colon"},
      {"a:0", "from 1 to 65536"},
      {"a:65537", "from 1 to 65536"},
      {"a:+1", "from 1 to 65536"},
      {"a:2:3", "with slots one is written [ADDRESS]:SLOTS"},
      {"a slots=-1", "'a slots=-1': slots is a whole number"},
      {"a slots=", "words like slots=2"},
      {"a slots", "words like slots=2"},
      {"a b", "a second host needs a comma or a line of its own"},
      {"a = slots 2", "words like slots=2"},
      {"a slots==2", "words like slots=2"},
      {"a slots=2 slots=3", "the number of slots is given twice"},
      {"a:2 slots=3", "the number of slots is given twice"},
      {"a slots=4 max_slots=2", "more slots than max_slots"},
      {"a rack=1", "'rack' is not understood"},
      {"-oProxyCommand=x", "this is not a host name or address"},
      {"-x", "'-x': this is not a host name"},
      {"+n0 slots=2", "this is not a host name"},
      {"^a", "this is not a host name"},
      {".a", "this is not a host name"},
      {"a;reboot", "this is not a host name"},
      {"$(reboot):2", "this is not a host name"},
      {"/etc/hosts", "this is not a host name"},
      {"@a", "no user before the @"},
      {"u@", "this is not a host name"},
      {"=2", "this is not a host name"},
      {"[fd00::1", "the bracket is not closed"},
      {"[fd00::1]2", "after the bracket comes :SLOTS"},
      {"[a]:2", "this is not a host name"},
      {"fd00::1%eth0", "this is not an IPv6 address"},
      {"[fd00::1%eth0]:2", "this is not a host name"},
      {"h\xc3\xb6st slots=1", "line 1, 'h??st slots=1': this is not a host name"},
      {std::string_view("a\0b", 3), "'a?b': this is not a host name"},
      {std::string_view("a0::\0b", 6), "'a0::?b': this is not an IPv6 address"},
      {"a slots=40000\na slots=40000", "line 2, 'a slots=40000': this host has more than 65536 slots in all"},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(Read(row.text), ::testing::StartsWith("error: ")) << row.text;
    EXPECT_THAT(Read(row.text), HasSubstr(row.error)) << row.text;
  }
}

TEST(MpiHosts, AreBounded) {
  EXPECT_THAT(Read(std::string(254, 'a')), HasSubstr("this is not a host name"));
  EXPECT_EQ(Read(std::string(253, 'a')), std::string(253, 'a') + "*1");
  std::string endless = "a slots=" + std::string(2000, '1');
  EXPECT_THAT(Read(endless), HasSubstr("...': an entry has at most 1024 bytes"));
  EXPECT_LT(Read(endless).size(), 400U);
  std::string many;
  for (int i = 0; i < kMostMpiHosts; ++i) many += fmt::format("h{}\n", i);
  EXPECT_EQ(ParseMpiHosts(many)->size(), static_cast<size_t>(kMostMpiHosts));
  EXPECT_THAT(Read(many + "h0\n" + "one-more"), HasSubstr("line 100002, 'one-more': there are more than 100000 hosts"));
  EXPECT_THAT(Read(std::string(kMostMpiHostText + 1, '\n')), HasSubstr("is it a host file?"));
}

TEST(MpiHosts, AreWrittenInBothDialects) {
  const std::vector<MpiHost> hosts = {{"a.b", 2}, {"fd00::1", 3}, {"10.0.0.1", 1}};
  EXPECT_EQ(OpenMpiHostFile(hosts), "a.b slots=2\nfd00::1 slots=3\n10.0.0.1 slots=1\n");
  EXPECT_EQ(HydraHostFile(hosts), "a.b:2\n[fd00::1]:3\n10.0.0.1:1\n");
  EXPECT_EQ(*ParseMpiHosts(OpenMpiHostFile(hosts)), hosts);
  EXPECT_EQ(*ParseMpiHosts(HydraHostFile(hosts)), hosts);
}

TEST(MpiHosts, CommonSlots) {
  EXPECT_EQ(CommonSlots({}), std::nullopt);
  EXPECT_EQ(CommonSlots({{"a", 2}, {"b", 2}}), 2);
  EXPECT_EQ(CommonSlots({{"a", 2}, {"b", 1}}), std::nullopt);
}

}  // namespace
}  // namespace muster::agent
