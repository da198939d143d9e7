// SPDX-License-Identifier: Apache-2.0
// Splits a program's stderr into lines as a person reads them, and classifies single lines. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

struct StderrLine {
  // Without line end, trailing blanks, escape sequences, control characters (except \t) and marks of a launcher.
  std::string text;
  // The launcher's mark. Lines with the same mark belong together. "[rank0]:" (PyTorch), "[trainer1]:" (torchrun),
  // "[1,0]<stderr>:" (mpirun --tag-output, also within a line, and after a time), "[0] " (Hydra), "(worker pid=12) "
  // (Ray). "": none.
  std::string mark;
  size_t begins = 0;         // offset of its first byte
  bool overwritten = false;  // it ended in \r, like a progress bar, so the next line replaced it on the screen
};

std::vector<StderrLine> StderrLines(std::string_view text);

// The log level that a line shows: the letter of glog and PyTorch ("W1126 02:19:50", "[E ProcessGroupNCCL.cpp:475]"),
// the letter of TensorFlow and Muster ("02:50:00.123: I"), a level's name in capitals near the start (Python's logging,
// Hydra, loguru, NCCL), structlog's "[error    ]", the field "level" of JSON and logfmt, "FooWarning: ", "error: ".
enum class LineLevel { kNone, kQuiet, kError, kFatal };  // kQuiet: a warning or less; kFatal: glog's F, an abort
LineLevel LevelOf(std::string_view line);

// Whether a line explains nothing: empty, a rule, a progress bar, advice below an error (Hydra's "Set the environment
// variable HYDRA_FULL_ERROR=1", Rust's note), or what libraries write of harmless things at the start and at a shutdown
// (a factory registered twice, leaked semaphores, a process group not destroyed).
bool IsDecoration(std::string_view line);

// Whether a line is a rule as Open MPI (dashes) and Hydra (=) put around their messages.
bool IsLongRule(std::string_view line);

bool IsIndented(std::string_view line);  // begins with a blank or a tab

}  // namespace muster
