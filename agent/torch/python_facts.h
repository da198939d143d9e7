// What files tell about the Python that runs the workers, without starting it: whether it is the one that the user
// would expect, and which version of torch it imports.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/torch/flight_recorder.h"
#include "agent/torch/torch_command.h"

namespace muster::agent {

// One sentence where the python of FindPython(surroundings, launcher) is neither VIRTUAL_ENV's nor the first python3 on
// PATH; nullopt where it is both (or there is no such other), where the user has named it (by PYTHON_EXEC, or the
// launcher is a python or a path), and where there is none. Two paths are the same Python where they lie in one folder,
// or lead to one file and neither is a virtual environment's, which is known by its pyvenv.cfg.
std::optional<std::string> OtherPythonNote(const CommandSurroundings& surroundings, std::string_view launcher);

// Which names of the flight recorder's settings the torch of `python` (a path) reads. kBoth where no torch is found, or
// several that differ: in PYTHONPATH, below the python's own folder and the user's, for any version of Python.
RecorderNames RecorderNamesOf(const CommandSurroundings& surroundings, const std::string& python);

}  // namespace muster::agent
