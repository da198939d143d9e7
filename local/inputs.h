// SPDX-License-Identifier: Apache-2.0
// What `muster local` gives to a run: the objects of its files and flags, programs of this machine, images.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/status.h"
#include "controller/plan/plan_files.h"
#include "local/cluster/world.h"
#include "local/flags.h"
#include "local/run.h"

namespace muster::local {

// Kinds of objects that pods use, and that the user gives.
const std::set<std::string_view>& ObjectsOfPods();

// Creates the objects of the flags, then those of the files. Errors name the flag, or the file and line.
Status PutObjects(const LocalFlags& flags, const std::vector<controller::InputFile>& files, World* world);

// Paths of programs: beside this binary, else on PATH; empty: not found.
struct LocalPrograms {
  std::string bwrap, muster, initializer;
};
LocalPrograms FindPrograms(const Environment& environment);

// `state`: the state folder; `folder`: the run's, in it; `agent`: the binary that the pods run as `muster`. Unpacks
// images, which may take long and is said on stderr. Errors name the flag.
StatusOr<LocalRunOptions> OptionsOf(const LocalFlags& flags, const Environment& environment,
                                    const LocalPrograms& programs, const std::string& state, const std::string& folder,
                                    const std::string& agent);

}  // namespace muster::local
