// The lines of a program's stderr as a person reads them, and what single lines are. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

struct StderrLine {
  // Without its end, blanks before the end, escape sequences, control characters (but \t), and marks of a launcher.
  std::string text;
  // The launcher's mark: lines with the same one belong together. "[rank0]:" (PyTorch), "[trainer1]:" (torchrun),
  // "[1,0]<stderr>:" (mpirun --tag-output, also within a line), "(worker pid=12) " (Ray). "": none.
  std::string mark;
  size_t begins = 0;         // offset of its first byte
  bool overwritten = false;  // it ended in \r, as a progress bar's lines do: the next line took its place
};

std::vector<StderrLine> StderrLines(std::string_view text);

// What a line of a log says of itself: glog's and PyTorch's letter ("W1126 02:19:50", "[E ProcessGroupNCCL.cpp:475]"),
// TensorFlow's and Muster's ("02:50:00.123: I"), a level's name in capitals near its start (Python's logging, Hydra,
// loguru, NCCL), "FooWarning: ", "error: ".
enum class LineLevel { kNone, kQuiet, kError, kFatal };  // kQuiet: a warning or less; kFatal: glog's F, it aborts
LineLevel LevelOf(std::string_view line);

// It says nothing by itself: empty, a rule, a progress bar, or what is added below an error (Hydra's "Set the
// environment variable HYDRA_FULL_ERROR=1", Rust's note) and at a shutdown (leaked semaphores, a process group not destroyed).
bool IsDecoration(std::string_view line);

// Open MPI encloses its messages in rules of dashes.
bool IsLongRule(std::string_view line);

bool IsIndented(std::string_view line);  // begins with a blank or a tab

}  // namespace muster
