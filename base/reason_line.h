// SPDX-License-Identifier: Apache-2.0
// Finds the one line of a program's stderr that explains its end.
//
// The last line often does not explain it: a destructor's warning, faulthandler's list of modules, Hydra's advice or
// mpirun's rule stands below the exception. So lines are sorted into kinds. The best kind wins (1 is the best), and
// within a kind the last line wins.
//
//   1. A line that a program writes only when it ends:
//        Python: the line after the traceback; of a chain, the last one, with the first of its direct causes; of an
//        exception group, the group's line and the first exception in it; SyntaxError. Also in the forms of Rich,
//        loguru and Hydra, in log lines in JSON, and after "[rank0]:"
//        C++'s "terminate called after throwing" with its what(); glibc's aborts; failed assertions; glog's F lines;
//        sanitizers; faults of ROCm; Java's "Exception in thread" with the last "Caused by"
//        panics of Go and Rust; errors of Open MPI and of MPICH, with the end of MPICH's stack
//   2. A line that reports the end of a thread or of another process, or names the signal: "Exception in thread",
//      asyncio's "Task exception was never retrieved", CalledProcessError, ChildFailedError, MPI_Abort, "Fatal Python
//      error: Aborted", messages of Open MPI and Hydra between long rules
//   3. A log line at level error
//   4. The last line, such as "sh: 1: foo: not found". Only if nothing but decoration stands below it, and it is not a
//      warning, a log line below level error, or a progress bar
//
// A line that tells of a lost peer (peer_loss.h) does not replace another error of its kind that is fresh: a program
// whose own error ends its collective operations often loses its peers in its teardown. If one of two exceptions that
// are chained tells of a lost peer, the first of them counts: the other one follows from it.
//
// Kinds 3 and 4 count only if they are fresh: a worker that calls os._exit() writes nothing about its end, and its last
// line may be hours old. Exceptions in destructors and exit handlers, which Python ignores, never count.
//
// Pure. Work and memory are proportional to the size of the text. Only its last 2,000 lines are read.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace muster {

// How much of stderr the caller should keep, and how old it may be when the program ends.
inline constexpr size_t kReasonText = size_t{64} << 10;                // bytes
inline constexpr Duration kReasonAge = std::chrono::seconds(60);       // exit handlers may be slow
inline constexpr Duration kReasonFreshAge = std::chrono::seconds(10);  // for kinds 3 and 4
inline constexpr size_t kMaxReasonLine = 500;                          // bytes of the result

// `text`: the last bytes of stderr. `fresh_from`: offset in `text` where the fresh part begins; text.size() if no part
// is fresh. Returns at most kMaxReasonLine bytes without control characters, cut between characters and marked by
// "..."; "" if no line explains the end.
std::string ReasonLine(std::string_view text, size_t fresh_from = 0);

// Whether `line`, a result of ReasonLine(), is an error by its own form: an exception, or another line of kind 1. A
// signal's name, a log line and a last line may follow from anything.
bool IsError(std::string_view line);
// Whether it is the exception of a program that reports the end of another process: ChildFailedError,
// BrokenProcessPool.
bool ReportsAnotherProcess(std::string_view line);

bool HasTraceback(std::string_view text);  // a Python traceback, whose explanation is at its end

}  // namespace muster
