// SPDX-License-Identifier: Apache-2.0
#include "base/reason_forms.h"

#include <algorithm>
#include <array>

#include "base/stderr_lines.h"
#include "base/text.h"

namespace muster {
namespace {

bool Holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

template <size_t size>
bool StartsWithAny(std::string_view text, const std::array<std::string_view, size>& known) {
  return std::any_of(known.begin(), known.end(), [&](std::string_view start) { return text.starts_with(start); });
}

bool IsOfName(char c) {
  const bool ascii = static_cast<unsigned char>(c) < 0x80;
  return !ascii || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '<' || c == '>';
}

Kind KindOfFatalPythonError(std::string_view line) {
  constexpr auto kOfASignal = std::to_array<std::string_view>(
      {"Aborted", "Segmentation fault", "Bus error", "Floating", "Illegal instruction"});
  return StartsWithAny(line, kOfASignal) ? Kind::kReport : Kind::kEnding;
}

// A line that only names a signal, or the end of another process.
bool IsReport(std::string_view line) {
  constexpr auto kStarts = std::to_array<std::string_view>({
      "terminate called ",              // "without an active exception", "recursively"
      "*** SIG",                        // glog, Abseil
      "application called MPI_Abort(",  // MPICH
  });
  return StartsWithAny(line, kStarts) || Holds(line, "): application called MPI_Abort(") ||
         Holds(line, "] Caught signal ") ||                                            // UCX
         (line.starts_with("[rank: ") && Holds(line, "] Child process with PID ")) ||  // Lightning
         (line.starts_with('[') && Holds(line, "] Signal: ")) ||                       // Open MPI
         (line.starts_with("Timeout (") && line.ends_with(")!"));                      // faulthandler
}

}  // namespace

std::string_view ExceptionName(std::string_view line) {
  const size_t end = static_cast<size_t>(std::find_if_not(line.begin(), line.end(), IsOfName) - line.begin());
  const std::string_view name = line.substr(0, end);
  const std::string_view behind = line.substr(end);
  if (name.empty() || name.front() == '.' || name.front() == '<') return "";
  if (!behind.empty() && behind != ":" && !behind.starts_with(": ")) return "";
  const bool capital = name.front() == '_' || (name.front() >= 'A' && name.front() <= 'Z');
  if (!capital && !Holds(name, ".")) return "";
  return Upper(name) == name && LevelOf(line) != LineLevel::kNone ? "" : name;  // "ERROR: ..."
}

bool IsDirectCause(std::string_view line) { return line.starts_with("The above exception was the direct cause"); }
bool IsChainSentence(std::string_view line) {
  return IsDirectCause(line) || line.starts_with("During handling of the above exception");
}

Kind KindBelow(std::string_view line) {
  constexpr auto kIgnored = std::to_array<std::string_view>(
      {"Exception ignored", "Error in atexit", "--- Logging error ---", "Error in sys.excepthook"});
  constexpr auto kOfAnother = std::to_array<std::string_view>(
      {"Exception in thread ", "Exception in callback ", "future: <", "handle: <", "Process "});
  if (StartsWithAny(line, kIgnored)) return Kind::kNone;
  return StartsWithAny(line, kOfAnother) ? Kind::kReport : Kind::kEnding;
}

bool NamesAnotherProcess(std::string_view exception_name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"CalledProcessError", "ChildFailedError", "ProcessRaisedException", "ProcessExitedException",
       "BrokenProcessPool", "RayActorError", "ActorDiedError", "WorkerCrashedError"});
  const std::string_view name = exception_name.substr(exception_name.rfind('.') + 1);  // npos + 1 is 0
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool IsOfTraceback(std::string_view line) {
  constexpr auto kStarts = std::to_array<std::string_view>({"> File ", "|", "+-", "\u2502", "\u256d", "\u2570"});
  return line.empty() || IsIndented(line) || StartsWithAny(line, kStarts);
}

bool IsSyntaxPlace(std::string_view line) {
  constexpr std::string_view kLine = "\", line ";
  if (!line.starts_with("  File \"")) return false;
  const size_t at = line.rfind(kLine);
  return at != std::string_view::npos && ParseInt(line.substr(at + kLine.size())).has_value();
}

bool IsSyntaxError(std::string_view exception_name) {
  return exception_name == "SyntaxError" || exception_name == "IndentationError" || exception_name == "TabError";
}

Kind KindOfLine(std::string_view line) {
  constexpr std::string_view kFatalPython = "Fatal Python error: ";
  constexpr auto kStarts = std::to_array<std::string_view>({
      "terminate called after throwing ",
      "pure virtual method called",
      "libc++abi: ",
      "panic: ",
      "fatal error: ",
      "Exception in thread \"",  // C++, Go, Java
      "free(): ",
      "malloc(): ",
      "realloc(): ",
      "munmap_chunk(): ",
      "mremap_chunk(): ",
      "malloc_consolidate(): ",
      "double free or corruption",
      "corrupted size vs. prev_size",
      "corrupted double-linked list",
      "Fatal glibc error: ",
      "*** stack smashing detected ***",
      "*** buffer overflow detected ***",
      "*** Error in `",
      "Assertion failed: ",          // musl
      "Memory access fault by GPU",  // ROCm
      "HW Exception by GPU",
      "OMP: Error #",     // Intel's and LLVM's OpenMP
      "Fatal error in ",  // MPICH
  });
  if (line.starts_with(kFatalPython)) return KindOfFatalPythonError(line.substr(kFatalPython.size()));
  const bool tells = StartsWithAny(line, kStarts) || (Holds(line, "Assertion `") && Holds(line, "' failed")) ||
                     (line.starts_with("thread '") && Holds(line, " panicked at ")) ||
                     (line.starts_with("==") && Holds(line, "ERROR: ") && Holds(line, "Sanitizer: ")) ||
                     Holds(line, "): Fatal error in ") || Holds(line, "aborting with error : HSA_STATUS") ||
                     Holds(line, "*** MPI_ERR_") || LevelOf(line) == LineLevel::kFatal;
  return tells ? Kind::kEnding : IsReport(line) ? Kind::kReport : Kind::kNone;
}

std::string ExceptionInJson(std::string_view line) {
  const size_t begin = line.starts_with('{') ? line.find(kTraceback) : std::string_view::npos;
  if (begin == std::string_view::npos) return "";
  constexpr std::string_view kNewline = "\\n";
  std::string found;
  for (std::string_view rest = line.substr(begin); !rest.empty();) {
    const size_t end = rest.find(kNewline);
    std::string_view piece = rest.substr(0, end);
    for (size_t quote = piece.find('"'); quote != std::string_view::npos; quote = piece.find('"', quote + 1)) {
      if (quote > 0 && piece[quote - 1] == '\\') continue;
      piece = piece.substr(0, quote);
      rest = "";
      break;
    }
    if (!ExceptionName(piece).empty()) found = piece;
    rest = end == std::string_view::npos || rest.empty() ? "" : rest.substr(end + kNewline.size());
  }
  std::erase(found, '\\');
  return found;
}

bool IsDeviceAssertion(std::string_view line) { return Holds(line, "Assertion `") && line.ends_with("` failed."); }

bool IsMpichFrame(std::string_view line) {
  const size_t name = static_cast<size_t>(std::find_if_not(line.begin(), line.end(), IsOfName) - line.begin());
  if (name == 0 || !line.substr(name).starts_with('(')) return false;
  const size_t number = line.find_first_not_of("0123456789", name + 1);
  if (number == std::string_view::npos || number == name + 1 || line[number] != ')') return false;
  const size_t dots = line.find_first_not_of('.', number + 1);
  return dots != std::string_view::npos && line[dots] == ':';
}

}  // namespace muster
