// SPDX-License-Identifier: Apache-2.0
// The forms of the lines in which programs write why they end, one function per form. Which line of a text explains its
// end: reason_line.h. All are pure and linear in the line, which is without marks and escape sequences
// (stderr_lines.h).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// How well a line explains an end, from the weakest to the strongest (reason_line.h has them from 4 to 1).
enum class Kind { kNone, kLastLine, kErrorLine, kReport, kEnding };
inline constexpr size_t kKinds = 5;

// The kind of a line that explains an end by itself: kEnding or kReport, else kNone.
Kind KindOfLine(std::string_view line);

// ---- Python ----

inline constexpr std::string_view kTraceback = "Traceback (most recent call last)";

// The exception's name at the beginning of "torch.OutOfMemoryError: CUDA out of memory"; "" if there is none. A name
// has a module or begins with a capital.
std::string_view ExceptionName(std::string_view line);
bool IsSyntaxError(std::string_view exception_name);
bool NamesAnotherProcess(std::string_view exception_name);  // it reports the end of another process

// The sentences between the tracebacks of a chain; the first is of `raise ... from ...`.
bool IsDirectCause(std::string_view line);
bool IsChainSentence(std::string_view line);

// The kind of a traceback, by the line above it. kNone: Python ignores the exception.
Kind KindBelow(std::string_view line);

// Frames, source lines and the marks below them; loguru's frames; Rich's boxes.
bool IsOfTraceback(std::string_view line);
// `  File "t.py", line 3`: the place of a SyntaxError. A frame goes on with ", in ...", faulthandler's with " in ...".
bool IsSyntaxPlace(std::string_view line);

// The exception's line of the traceback that a log line in JSON has as a string; "": there is none.
std::string ExceptionInJson(std::string_view line);

// ---- Others ----

// A line of MPICH's error stack: "MPIDI_OFI_mpi_init_hook(1382): OFI get address vector map failed".
bool IsMpichFrame(std::string_view line);

// An assertion that failed in a kernel on a GPU; each of its threads writes one.
bool IsDeviceAssertion(std::string_view line);

}  // namespace muster
