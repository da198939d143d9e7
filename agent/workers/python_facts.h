// SPDX-License-Identifier: Apache-2.0
// What files tell about the Python that runs the workers, without starting it: whether it is the one that the user
// would expect, and which version of torch it imports.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/workers/flight_recorder.h"
#include "agent/workers/torch_command.h"

namespace muster::agent {

// A sentence if the python of FindPython(surroundings, launcher) is not that of VIRTUAL_ENV, or is not the first
// python3 on PATH. nullopt if it is both (or there is no such other one), if the user has named it (by PYTHON_EXEC, or
// the launcher is a python or a path), or if there is no python. Two paths are the same Python if they are in one
// folder, or if they lead to one file and neither belongs to a virtual environment (which has a pyvenv.cfg).
std::optional<std::string> OtherPythonNote(const CommandSurroundings& surroundings, std::string_view launcher);

// Which names of the flight recorder's settings the torch of `python` (a path) reads. Looks in PYTHONPATH, below the
// python's own folder and the user's, for any version of Python. kBoth: no torch, or several that differ.
RecorderNames RecorderNamesOf(const CommandSurroundings& surroundings, const std::string& python);

}  // namespace muster::agent
