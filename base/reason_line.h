// The one line of a program's stderr that explains its end.
//
// The last line often does not: a destructor's warning, faulthandler's list of modules, Hydra's advice or mpirun's rule
// stands below the exception. What is found counts by kind; of one kind the last counts.
//
//   1. What only a program that ends writes:
//        Python's exception: the line behind the traceback, of a chain the last one; of an exception group its own line
//        and the first exception in it; SyntaxError. Also as Rich, loguru and Hydra write it, and behind "[rank0]:"
//        C++'s "terminate called ..." with its what(); glibc's aborts; failed assertions; glog's F lines; sanitizers
//        panics of Go and Rust; an error of Open MPI's own
//   2. What reports the end of a thread, of another process, or by which signal it came: "Exception in thread",
//      asyncio's "Task exception was never retrieved", CalledProcessError, ChildFailedError, "Fatal Python error:
//      Aborted", Open MPI's messages between rules of dashes
//   3. A line of a log at the level error
//   4. The last line, whatever it is: "sh: 1: foo: not found". Only where nothing but decoration stands below it, and
//      not a warning, a line of a log below error, or a progress bar
//
// Kinds 3 and 4 could be old: a worker that calls os._exit() has said nothing of its end, and its last line may be
// hours old. They count only where they are fresh. Exceptions in destructors and exit handlers, which Python ignores, never
// count.
//
// Pure. Work and memory are proportional to the size of the text, of which the last 2,000 lines count.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace muster {

// How much of stderr the caller should keep, and how long before the end it may have come.
inline constexpr size_t kReasonText = size_t{64} << 10;                // bytes
inline constexpr Duration kReasonAge = std::chrono::seconds(60);       // exit handlers may take their time
inline constexpr Duration kReasonFreshAge = std::chrono::seconds(10);  // of kinds 3 and 4
inline constexpr size_t kMaxReasonLine = 500;                          // bytes of the answer

// `text`: the last bytes of stderr. `fresh_from`: offset in it where the fresh part begins; text.size(): nothing is.
// At most kMaxReasonLine bytes without control characters, cut at a character and marked by "..."; "": nothing explains
// the end.
std::string ReasonLine(std::string_view text, size_t fresh_from = 0);

bool HasTraceback(std::string_view text);  // of Python: what explains it stands at its end

}  // namespace muster
