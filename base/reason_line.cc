#include "base/reason_line.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/peer_loss.h"
#include "base/stderr_lines.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster {
namespace {

// From the weakest to the strongest.
enum class Kind { kNone, kLastLine, kErrorLine, kReport, kEnding };
constexpr size_t kKinds = 5;

constexpr std::string_view kTraceback = "Traceback (most recent call last)";
constexpr int kMostStrays = 8;       // unrelated lines within a traceback
constexpr size_t kMostLines = 2000;  // at the end of the text
constexpr size_t kLooksAhead = 3;

bool Holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

template <size_t size>
bool StartsWithAny(std::string_view text, const std::array<std::string_view, size>& known) {
  return std::any_of(known.begin(), known.end(), [&](std::string_view start) { return text.starts_with(start); });
}

// ---- Python ----

bool IsOfName(char c) {
  const bool ascii = static_cast<unsigned char>(c) < 0x80;
  return !ascii || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '<' || c == '>';
}

// The exception's name at the beginning of "torch.OutOfMemoryError: CUDA out of memory"; "" if there is none. A name
// has a module or begins with a capital.
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

bool IsChainSentence(std::string_view line) {
  return line.starts_with("During handling of the above exception") ||
         line.starts_with("The above exception was the direct cause");
}

// The kind of a traceback, by the line above it.
Kind KindBelow(std::string_view line) {
  constexpr auto kIgnored = std::to_array<std::string_view>(
      {"Exception ignored", "Error in atexit", "--- Logging error ---", "Error in sys.excepthook"});
  constexpr auto kOfAnother = std::to_array<std::string_view>(
      {"Exception in thread ", "Exception in callback ", "future: <", "handle: <", "Process "});
  if (StartsWithAny(line, kIgnored)) return Kind::kNone;
  return StartsWithAny(line, kOfAnother) ? Kind::kReport : Kind::kEnding;
}

bool NamesAnotherProcess(std::string_view exception_name) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"CalledProcessError", "ChildFailedError", "ProcessRaisedException",
                                       "ProcessExitedException", "BrokenProcessPool"});
  const std::string_view name = exception_name.substr(exception_name.rfind('.') + 1);  // npos + 1 is 0
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Frames, source lines and the marks below them; loguru's frames; Rich's boxes.
bool IsOfTraceback(std::string_view line) {
  constexpr auto kStarts = std::to_array<std::string_view>({"> File ", "|", "+-", "\u2502", "\u256d", "\u2570"});
  return line.empty() || IsIndented(line) || StartsWithAny(line, kStarts);
}

// `  File "t.py", line 3`: the place of a SyntaxError. A frame goes on with ", in ...", faulthandler's with " in ...".
bool IsSyntaxPlace(std::string_view line) {
  constexpr std::string_view kLine = "\", line ";
  if (!line.starts_with("  File \"")) return false;
  const size_t at = line.rfind(kLine);
  return at != std::string_view::npos && ParseInt(line.substr(at + kLine.size())).has_value();
}

bool IsSyntaxError(std::string_view exception_name) {
  return exception_name == "SyntaxError" || exception_name == "IndentationError" || exception_name == "TabError";
}

// ---- Others ----

Kind KindOfFatalPythonError(std::string_view line) {
  constexpr auto kOfASignal = std::to_array<std::string_view>(
      {"Aborted", "Segmentation fault", "Bus error", "Floating", "Illegal instruction"});
  return StartsWithAny(line, kOfASignal) ? Kind::kReport : Kind::kEnding;
}

// The kind of a line that explains an end by itself.
Kind KindOfLine(std::string_view line) {
  constexpr std::string_view kFatalPython = "Fatal Python error: ";
  constexpr auto kStarts = std::to_array<std::string_view>({
      "terminate called ",
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
      "Assertion failed: ",  // musl
  });
  if (line.starts_with(kFatalPython)) return KindOfFatalPythonError(line.substr(kFatalPython.size()));
  const bool tells = StartsWithAny(line, kStarts) || (Holds(line, "Assertion `") && line.ends_with("' failed.")) ||
                     (line.starts_with("thread '") && Holds(line, " panicked at ")) ||
                     (line.starts_with("==") && Holds(line, "ERROR: ") && Holds(line, "Sanitizer: ")) ||
                     Holds(line, "*** MPI_ERR_") || LevelOf(line) == LineLevel::kFatal;
  return tells ? Kind::kEnding : Kind::kNone;
}

std::string OneLine(std::string_view text) {
  std::string line;
  for (char c : text) {
    const bool blank = c == ' ' || c == '\t';
    if (!blank || (!line.empty() && line.back() != ' ')) line += blank ? ' ' : c;
  }
  return line;
}

std::string Shortened(std::string_view line) {
  if (line.size() <= kMaxReasonLine) return std::string(line);
  constexpr std::string_view kMore = "...";
  return std::string(Beginning(line, kMaxReasonLine - kMore.size())).append(kMore);
}

class Finder {
 public:
  Finder(std::string_view text, size_t fresh_from) : lines_(StderrLines(text)), fresh_from_(fresh_from) {
    told_.resize(lines_.size());
  }

  std::string Find() {
    for (size_t at = 0; at < lines_.size(); ++at) Read(at);
    OfferLastLine();
    auto found = std::find_if(best_.rbegin(), best_.rend(), [](const Best& best) { return !best.line.empty(); });
    return found == best_.rend() ? "" : Shortened(found->line);
  }

 private:
  enum class In { kNothing, kTraceback, kSyntaxError, kGroup, kStack };

  // The state of reading the lines with one mark.
  struct Block {
    In in = In::kNothing;
    Kind kind = Kind::kEnding;  // of the traceback and of tracebacks chained to it
    int strays = 0;
    size_t margin = 0;     // column of an exception group's bars
    std::string group;     // the exception group's own line
    std::string above;     // the last line outside of blocks that was not empty
    bool chained = false;  // the traceback follows from the one above it
  };

  struct Best {
    std::string line;
    bool own = false;  // it does not tell of a lost peer
    bool fresh = false;
  };

  // `at`: the line of the text that `line` was made of.
  void Offer(Kind kind, size_t at, std::string line, bool chained = false) {
    if (kind == Kind::kNone) return;
    Best& best = best_[static_cast<size_t>(kind)];
    const bool own = !TellsOfLostPeer(line);
    if (!own && best.own && (chained || best.fresh)) return;
    best = {std::move(line), own, Fresh(at)};
  }

  bool Fresh(size_t at) const { return lines_[at].begins >= fresh_from_; }

  void Read(size_t at) {
    const std::string& line = lines_[at].text;
    Block& block = blocks_[lines_[at].mark];
    told_[at] = ReadRule(at) || Continues(block, at) || Opens(block, line) || IsIgnored(block, line) || Tells(at);
    if (!told_[at] && Fresh(at) && LevelOf(line) == LineLevel::kError)
      Offer(Kind::kErrorLine, at, OneLine(Strip(line)));
    if (block.in == In::kNothing && !line.empty()) block.above = line;
  }

  // "Exception ignored in: <function P.__del__>", followed by an exception without a traceback.
  static bool IsIgnored(const Block& block, std::string_view line) {
    return block.above.starts_with("Exception ignored") && !ExceptionName(line).empty();
  }

  bool Tells(size_t at) {
    const std::string& line = lines_[at].text;
    const Kind kind = KindOfLine(line);
    if (kind == Kind::kNone) return false;
    const bool thrown = line.starts_with("terminate called after throwing");
    Offer(kind, at, thrown ? WithWhat(at) : WithNext(at));
    return true;
  }

  // The line. One that ends in a colon is incomplete: then the next line of the same mark is appended.
  std::string WithNext(size_t at) const {
    std::string line(Strip(lines_[at].text));
    if (!line.ends_with(':')) return OneLine(line);
    for (size_t next = at + 1; next < std::min(lines_.size(), at + 1 + kLooksAhead); ++next) {
      const std::string& text = lines_[next].text;
      if (lines_[next].mark != lines_[at].mark || text.empty()) continue;
      if (IsDecoration(text) || Holds(text, kTraceback)) break;
      return OneLine(fmt::format("{} {}", line, text));
    }
    return OneLine(line);
  }

  std::string WithWhat(size_t at) const {
    constexpr std::string_view kWhat = "what():";
    for (size_t next = at + 1; next < std::min(lines_.size(), at + 1 + kLooksAhead); ++next) {
      const std::string_view text = Strip(lines_[next].text);
      if (!text.starts_with(kWhat)) continue;
      return OneLine(fmt::format("{}: {}", lines_[at].text, Strip(text.substr(kWhat.size()))));
    }
    return OneLine(lines_[at].text);
  }

  // Open MPI's message between two rules: its first paragraph, and the next one if the first ends in a colon.
  bool ReadRule(size_t at) {
    if (!IsLongRule(lines_[at].text)) return false;
    std::string message;
    bool goes_on = true;
    for (size_t line = rule_; goes_on && line < at; ++line) {
      const std::string_view text = lines_[line].text;
      goes_on = !text.empty() || message.empty() || message.ends_with(':');
      if (text.empty() || !goes_on) continue;
      message += fmt::format("{}{}", message.empty() ? "" : " ", text);
    }
    const bool closes = in_rules_ && !message.empty();
    if (closes) {
      Offer(Kind::kReport, at, OneLine(message));
      std::fill(told_.begin() + static_cast<ptrdiff_t>(rule_), told_.begin() + static_cast<ptrdiff_t>(at), true);
    }
    in_rules_ = !closes;
    rule_ = at + 1;
    return true;
  }

  static bool Opens(Block& block, const std::string& line) {
    if (line.ends_with("(most recent call first):") || line == "Call stack:" ||
        line == "Stack (most recent call last):") {
      block.in = In::kStack;
      return true;
    }
    if (block.in == In::kNothing && IsSyntaxPlace(line)) {
      block.in = In::kSyntaxError;
      block.kind = Kind::kEnding;
      return true;
    }
    const size_t name = line.find(kTraceback);
    if (name == std::string::npos) return false;
    const bool box = line.starts_with("\u256d") || line.starts_with("+-");  // Rich
    if (!box && line.substr(name + kTraceback.size()) != ":") return false;
    block.chained = IsChainSentence(block.above);
    if (!block.chained) block.kind = KindBelow(block.above);
    block.strays = 0;
    block.group.clear();
    block.margin = line.find_first_not_of(' ');
    const bool group = line[block.margin] == '+' && Holds(line, "Exception Group Traceback");
    block.in = group ? In::kGroup : In::kTraceback;
    return true;
  }

  // Whether the line belongs to the open block. Closes the block at its last line or at a line that does not fit.
  bool Continues(Block& block, size_t at) {
    const std::string& line = lines_[at].text;
    switch (block.in) {
      case In::kNothing:
        return false;
      case In::kStack:
        if (line.empty() || IsIndented(line)) return true;
        break;
      case In::kSyntaxError:
        if (IsIndented(line)) return true;
        if (!IsSyntaxError(ExceptionName(line))) break;
        return EndTraceback(block, at);
      case In::kTraceback:
        if (Holds(line, kTraceback)) break;  // a new traceback
        if (IsOfTraceback(line)) return true;
        if (!ExceptionName(line).empty()) return EndTraceback(block, at);
        if (++block.strays <= kMostStrays) return false;
        break;
      case In::kGroup:
        if (ReadGroup(block, at)) return true;
        break;
    }
    block.in = In::kNothing;
    return false;
  }

  bool EndTraceback(Block& block, size_t at) {
    const bool of_another = NamesAnotherProcess(ExceptionName(lines_[at].text));
    Offer(of_another ? std::min(block.kind, Kind::kReport) : block.kind, at, WithNext(at), block.chained);
    block.in = In::kNothing;
    return true;
  }

  // "  | ExceptionGroup: many (2 sub-exceptions)", then "    | ValueError: a" for the first exception in it.
  bool ReadGroup(Block& block, size_t at) {
    const std::string& line = lines_[at].text;
    const size_t bar = line.find_first_not_of(' ');
    if (bar == std::string::npos || (line[bar] != '|' && line[bar] != '+')) return false;
    std::string_view content = std::string_view(line).substr(bar + 1);
    if (content.starts_with(' ')) content.remove_prefix(1);
    if (line[bar] == '+' || ExceptionName(content).empty()) return true;
    if (bar == block.margin && block.group.empty()) {
      block.group = content;
      Offer(block.kind, at, OneLine(content));
    } else if (bar > block.margin && !block.group.empty()) {
      Offer(block.kind, at, OneLine(fmt::format("{}, the first: {}", block.group, content)));
      block.margin = std::string::npos;  // ignore the group's other exceptions
    }
    return true;
  }

  void OfferLastLine() {
    size_t at = lines_.size();
    while (at > 0 && (lines_[at - 1].overwritten || IsDecoration(lines_[at - 1].text))) --at;
    while (at > 1 && IsIndented(lines_[at - 1].text) && !told_[at - 1]) --at;  // to the line that it continues
    if (at == 0 || told_[at - 1] || !Fresh(at - 1)) return;
    const std::string& line = lines_[at - 1].text;
    if (IsDecoration(line) || LevelOf(line) == LineLevel::kQuiet) return;
    Offer(Kind::kLastLine, at - 1, OneLine(Strip(line)));
  }

  const std::vector<StderrLine> lines_;
  const size_t fresh_from_;
  std::vector<bool> told_;  // lines that were read as part of a known form; kinds 3 and 4 ignore them
  std::map<std::string, Block> blocks_;
  std::array<Best, kKinds> best_;
  size_t rule_ = 0;  // the line after the last long rule
  bool in_rules_ = false;
};

}  // namespace

std::string ReasonLine(std::string_view text, size_t fresh_from) {
  size_t begin = text.size();
  for (size_t lines = 0; begin > 0 && lines < kMostLines; --begin) {
    if (text[begin - 1] == '\n' || text[begin - 1] == '\r') ++lines;
  }
  return Finder(text.substr(begin), fresh_from - std::min(fresh_from, begin)).Find();
}

bool IsError(std::string_view line) { return !ExceptionName(line).empty() || KindOfLine(line) != Kind::kNone; }

bool ReportsAnotherProcess(std::string_view line) { return NamesAnotherProcess(ExceptionName(line)); }

bool HasTraceback(std::string_view text) { return Holds(text, kTraceback); }

}  // namespace muster
