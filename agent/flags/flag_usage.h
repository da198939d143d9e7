// SPDX-License-Identifier: Apache-2.0
// The command lines of `muster run`, `launch` and `exec`, described by the flag table. Pure.
#pragma once

#include <string>

#include "agent/flags/torchrun_flag_table.h"
#include "usage/command.h"

namespace muster::agent {

usage::Command DescribeFlags(CalledAs called_as);

// One flag's line of a help text, or two.
std::string HelpRow(const usage::Flag& flag);
// The text of --help.
std::string HelpText(CalledAs called_as);

}  // namespace muster::agent
