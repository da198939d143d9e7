// SPDX-License-Identifier: Apache-2.0
// ssh's command lines as MPI runtimes use them, and the refused ones.
#include "rsh/rsh_arguments.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::rsh {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

TEST(RshArguments, AreRead) {
  const struct {
    Arguments arguments;
    RshCommand want;
  } rows[] = {
      {{"h", "true"}, {.host = "h", .command = "true"}},
      // Open MPI 4.1.4.
      {{"nodeB.sub.svc", " orted", "-mca", "ess", "\"env\""},
       {.host = "nodeB.sub.svc", .command = " orted -mca ess \"env\""}},
      {{"-o", "ConnectionAttempts=10", "a", " orted"}, {.host = "a", .command = " orted"}},
      // MPICH 4.0.2, as ssh.
      {{"-x", "a", "\"/usr/bin/hydra_pmi_proxy\"", "--control-port", "l:1", "--usize", "-2"},
       {.host = "a", .command = "\"/usr/bin/hydra_pmi_proxy\" --control-port l:1 --usize -2"}},
      {{"-q", "-x", "u@h", "a  b", "", "c"}, {.host = "h", .user = "u", .command = "a  b  c"}},
      {{"-p2222", "-l", "joe", "h", "c"}, {.host = "h", .user = "joe", .port = 2222, .command = "c"}},
      {{"-p", "22", "-p", "23", "-ljoe", "-l", "ann", "u@h", "c"},
       {.host = "h", .user = "joe", .port = 22, .command = "c"}},
      {{"u@v@h", "c"}, {.host = "h", .user = "u@v", .command = "c"}},
      {{"-xqp", "22", "h", "c"}, {.host = "h", .port = 22, .command = "c"}},
      {{"-xqp22", "h", "c"}, {.host = "h", .port = 22, .command = "c"}},
      {{"-n", "h", "c"}, {.host = "h", .no_stdin = true, .command = "c"}},
      {{"-xf", "h", "c"}, {.host = "h", .no_stdin = true, .command = "c"}},
      {{"h", "-n", "-p", "22", "c", "-x", "-h"}, {.host = "h", .port = 22, .no_stdin = true, .command = "c -x -h"}},
      {{"h", "--", "-n", "c"}, {.host = "h", .command = "-n c"}},
      {{"--", "h", "-n", "c"}, {.host = "h", .command = "-n c"}},
      {{"--", "h", "--", "c"}, {.host = "h", .command = "-- c"}},
      {{"h", "-", "c"}, {.host = "h", .command = "- c"}},
      {{"-oX=Y", "-i", "/k", "-F/dev/null", "-Eerr", "-46AaCgKkMTtvXYy", "h", "c"}, {.host = "h", .command = "c"}},
      {{"-o", "-n", "h", "c"}, {.host = "h", .command = "c"}},
      {{"[fd00::1]", "c"}, {.host = "fd00::1", .command = "c"}},
      {{"u@fd00::1", "c"}, {.host = "fd00::1", .user = "u", .command = "c"}},
      {{"--rsh-timeout", "2.5", "h", "c"}, {.host = "h", .command = "c", .timeout = milliseconds(2500)}},
      {{"h", "--rsh-timeout=7", "c"}, {.host = "h", .command = "c", .timeout = seconds(7)}},
      {{"-h"}, {.ask = RshCommand::Ask::kHelp}},
      {{"--help", "-Q"}, {.ask = RshCommand::Ask::kHelp}},
      {{"-xV", "h"}, {.ask = RshCommand::Ask::kVersion}},
      {{"h", "--version"}, {.ask = RshCommand::Ask::kVersion}},
  };
  for (const auto& row : rows) {
    auto command = ParseRshArguments(row.arguments);
    ASSERT_TRUE(command.ok()) << Join(row.arguments, "|") << ": " << command.status();
    EXPECT_EQ(*command, row.want) << Join(row.arguments, "|") << " -> " << command->host << "|" << command->command;
  }
}

TEST(RshArguments, ThatMeanNothingAreNamed) {
  const struct {
    Arguments arguments;
    std::string_view error;
  } rows[] = {
      {{}, "no host; usage: muster rsh [options] [user@]HOST COMMAND"},
      {{"-x", "--"}, "no host"},
      {{"h"}, "'h': no command for this host: an interactive login is not offered, use kubectl exec"},
      {{"h", ""}, "an interactive login is not offered"},
      {{"h", " ", ""}, "an interactive login is not offered"},
      {{"u@h", "-x"}, "'h': no command"},
      {{"-p"}, "'-p': this option needs a value"},
      {{"-xo"}, "'-o': this option needs a value"},
      {{"-p", "x", "h", "c"}, "'-p x': want a port from 1 to 65535"},
      {{"-p0", "h", "c"}, "'-p 0': want a port"},
      {{"-p65536", "h", "c"}, "want a port"},
      {{"-l", "", "h", "c"}, "'-l': the user's name is empty"},
      {{"-xZ", "h", "c"}, "'-xZ': unknown option -Z"},
      {{"--tree", "h", "c"}, "'--tree': unknown option"},
      {{"-W", "h:22", "h"}, "'-W': -W is not offered"},
      {{"-xs", "h", "sftp"}, "'-xs': -s is not offered"},
      {{"-L8080:a:80", "h", "c"}, "-L is not offered"},
      {{"-N", "h"}, "-N is not offered"},
      {{"--rsh-timeout"}, "'--rsh-timeout': this option needs a value"},
      {{"--rsh-timeout", "0", "h", "c"}, "'--rsh-timeout 0': want seconds, at least 0.001 and at most a year"},
      {{"--rsh-timeout=nan", "h", "c"}, "want seconds"},
      {{"--rsh-timeout=1e9", "h", "c"}, "want seconds"},
      {{"", "c"}, "'': this is not a host name or address"},
      {{"a b", "c"}, "'a b': this is not a host name"},
      {{"a\nb", "c"}, "this is not a host name"},
      {{"--", "-h", "c"}, "'-h': this is not a host name"},
      {{"u@-h", "c"}, "'u@-h': this is not a host name"},
      {{"@h", "c"}, "'@h': there is no user before the @"},
      {{"u@", "c"}, "'u@': this is not a host name"},
      {{"ssh://h", "c"}, "'ssh://h': this is not a host name"},
  };
  for (const auto& row : rows) {
    auto command = ParseRshArguments(row.arguments);
    ASSERT_FALSE(command.ok()) << Join(row.arguments, "|");
    EXPECT_THAT(std::string(command.status().message()), HasSubstr(row.error)) << Join(row.arguments, "|");
  }
}

}  // namespace
}  // namespace muster::rsh
