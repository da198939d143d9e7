// SPDX-License-Identifier: Apache-2.0
#include "base/reason_line.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/peer_loss.h"
#include "base/reason_forms.h"
#include "base/stderr_lines.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster {
namespace {

constexpr int kMostStrays = 8;       // unrelated lines within a traceback
constexpr size_t kMostLines = 2000;  // at the end of the text
constexpr size_t kLooksAhead = 3;    // lines below a message that may complete it
constexpr size_t kMostStack = 200;   // lines of a stack within a message

bool Holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

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
    std::string ended;     // the exception of the last traceback, Shortened()
    std::string cause;     // the first exception of a chain of direct causes
  };

  struct Best {
    std::string line;
    bool own = false;  // it does not tell of a lost peer
    bool fresh = false;
  };

  // `at`: the line of the text that `line` was made of.
  void Offer(Kind kind, size_t at, std::string_view line, bool chained = false) {
    if (kind == Kind::kNone) return;
    Best& best = best_[static_cast<size_t>(kind)];
    const bool own = !ReportsLostPeer(line);
    if (chained && !best.line.empty() && own != best.own) return;  // the first of the chain is the cause
    if (!own && best.own && best.fresh) return;
    best = {OneLine(line), own, Fresh(at)};
  }

  bool Fresh(size_t at) const { return lines_[at].begins >= fresh_from_; }

  void Read(size_t at) {
    const std::string& line = lines_[at].text;
    Block& block = blocks_[lines_[at].mark];
    told_[at] = ReadRule(at) || Continues(block, at) || Opens(block, line) || IsIgnored(block, line) || OfferReport(at);
    if (!told_[at] && Fresh(at) && LevelOf(line) == LineLevel::kError && !IsDecoration(line))
      Offer(Kind::kErrorLine, at, Strip(line));
    if (block.in == In::kNothing && !line.empty()) block.above = line;
  }

  // "Exception ignored in: <function P.__del__>", followed by an exception without a traceback.
  static bool IsIgnored(const Block& block, std::string_view line) {
    return block.above.starts_with("Exception ignored") && !ExceptionName(line).empty();
  }

  bool OfferReport(size_t at) {
    const std::string& line = lines_[at].text;
    if (IsDeviceAssertion(line)) {
      if (device_assert_.empty()) device_assert_ = Shortened(line);
      Offer(Kind::kReport, at, device_assert_);
      return true;
    }
    if (const std::string exception = ExceptionInJson(line); !exception.empty()) {
      Offer(Kind::kEnding, at, exception);
      return true;
    }
    const Kind kind = KindOfLine(line);
    if (kind != Kind::kNone) Offer(kind, at, Message(at, CauseBelow(at)));
    return kind != Kind::kNone;
  }

  // Java's last "Caused by: " below `at`.
  std::string CauseBelow(size_t at) const {
    constexpr std::string_view kCausedBy = "Caused by: ";
    std::string cause;
    if (!lines_[at].text.starts_with("Exception in thread \"")) return cause;
    for (size_t next = at + 1; next < std::min(lines_.size(), at + 1 + kMostStack); ++next) {
      const std::string& text = lines_[next].text;
      if (text.starts_with(kCausedBy)) cause = text.substr(kCausedBy.size());
      if (!text.starts_with(kCausedBy) && !IsIndented(text)) break;
    }
    return cause;
  }

  // The line, what completes it, and its cause.
  std::string Message(size_t at, std::string cause) const {
    std::string line(Strip(lines_[at].text));
    if (const std::string more = Completion(at); !more.empty())
      line += fmt::format("{}{}", line.ends_with(':') ? " " : ": ", more);
    if (Holds(line, "device-side assert triggered")) cause = device_assert_;
    if (!cause.empty() && !Holds(line, cause)) line += fmt::format(" (cause: {})", cause);
    return line;
  }

  // What the lines below say of an incomplete line: what() of a C++ exception, the end of MPICH's stack, NCCL's last
  // error, and the next line below one that ends in a colon.
  std::string Completion(size_t at) const {
    const std::string_view line = Strip(lines_[at].text);
    if (line.starts_with("terminate called after throwing")) {
      constexpr std::string_view kWhat = "what():";
      const size_t what = Below(at, [&](std::string_view text) { return Strip(text).starts_with(kWhat); });
      return what == 0 ? "" : std::string(Strip(Strip(lines_[what].text).substr(kWhat.size())));
    }
    if (line.ends_with("error stack:")) return EndOfMpichStack(at);
    if (line.ends_with(':')) return NextSentence(at);
    const size_t last = Below(at, [](std::string_view text) { return text == "Last error:"; });
    return last == 0 || last + 1 == lines_.size() ? "" : fmt::format("Last error: {}", lines_[last + 1].text);
  }

  // The first of the lines close below `at` that fits; 0: none does.
  template <typename Fits>
  size_t Below(size_t at, const Fits& fits) const {
    for (size_t next = at + 1; next < std::min(lines_.size(), at + 1 + kLooksAhead); ++next) {
      if (lines_[next].mark == lines_[at].mark && fits(lines_[next].text)) return next;
    }
    return 0;
  }

  std::string EndOfMpichStack(size_t at) const {
    std::string deepest;
    for (size_t next = at + 1; next < std::min(lines_.size(), at + 1 + kMostStack); ++next) {
      if (!IsMpichFrame(lines_[next].text)) break;
      if (!lines_[next].text.ends_with(':')) deepest = lines_[next].text;
    }
    return deepest;
  }

  // Skips empty lines, rules, and the stack that TensorFlow puts into its messages.
  std::string NextSentence(size_t at) const {
    size_t left = kLooksAhead;
    bool in_stack = false;
    for (size_t next = at + 1; left > 0 && next < std::min(lines_.size(), at + 1 + kMostStack); ++next) {
      const std::string& text = lines_[next].text;
      if (lines_[next].mark != lines_[at].mark) continue;
      if (Holds(text, kTraceback)) break;
      in_stack = text.ends_with("(most recent call last):") || (in_stack && (text.empty() || IsIndented(text)));
      if (!in_stack && !text.empty() && !IsDecoration(text)) return text;
      if (!in_stack) --left;
    }
    return "";
  }

  // The message of Open MPI or Hydra between two rules: its first paragraph, and the next one if the first ends in a
  // colon. A table is not a message.
  bool ReadRule(size_t at) {
    if (!IsLongRule(lines_[at].text)) return false;
    const char rule = lines_[at].text.front();
    std::string message;
    bool goes_on = true;
    bool is_message = rule == in_rules_;
    for (size_t line = rule_; goes_on && is_message && line < at; ++line) {
      std::string_view text = lines_[line].text;
      goes_on = !text.empty() || message.empty() || message.ends_with(':');
      if (text.empty() || !goes_on) continue;
      is_message = rule == '=' ? text.starts_with("=   ") : !Holds(text, " | ");
      if (rule == '=') text = Strip(text.substr(1));
      message += fmt::format("{}{}", message.empty() ? "" : " ", text);
    }
    const bool closes = is_message && !message.empty();
    if (closes) {
      Offer(Kind::kReport, at, message);
      std::fill(told_.begin() + static_cast<ptrdiff_t>(rule_), told_.begin() + static_cast<ptrdiff_t>(at), true);
    }
    in_rules_ = closes ? '\0' : rule;
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
    if (!IsDirectCause(block.above))
      block.cause.clear();
    else if (block.cause.empty())
      block.cause = block.ended;
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
    block.ended = Shortened(Strip(lines_[at].text));
    Offer(of_another ? std::min(block.kind, Kind::kReport) : block.kind, at, Message(at, block.cause), block.chained);
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
      Offer(block.kind, at, content);
    } else if (bar > block.margin && !block.group.empty()) {
      Offer(block.kind, at, fmt::format("{}, the first: {}", block.group, content));
      block.margin = std::string::npos;  // ignore the group's other exceptions
    }
    return true;
  }

  void OfferLastLine() {
    size_t at = lines_.size();
    size_t below = at + 1;
    while (at < below) {
      below = at;
      while (at > 0 && (lines_[at - 1].overwritten || IsDecoration(lines_[at - 1].text))) --at;
      while (at > 1 && IsIndented(lines_[at - 1].text) && !told_[at - 1]) --at;  // to the line that it continues
    }
    if (at == 0 || told_[at - 1] || !Fresh(at - 1)) return;
    const std::string& line = lines_[at - 1].text;
    if (IsDecoration(line) || LevelOf(line) == LineLevel::kQuiet) return;
    Offer(Kind::kLastLine, at - 1, Strip(line));
  }

  const std::vector<StderrLine> lines_;
  const size_t fresh_from_;
  std::vector<bool> told_;  // lines that were read as part of a known form; kinds 3 and 4 ignore them
  std::map<std::string, Block> blocks_;
  std::array<Best, kKinds> best_;
  size_t rule_ = 0;            // the line after the last long rule
  char in_rules_ = '\0';       // of what that rule is; 0: it closed a message
  std::string device_assert_;  // the first assertion that failed on a GPU
};

}  // namespace

std::string ReasonLine(std::string_view text, size_t fresh_from) {
  size_t begin = text.size();
  for (size_t lines = 0; begin > 0 && lines < kMostLines; --begin) {
    if (text[begin - 1] == '\n' || text[begin - 1] == '\r') ++lines;
  }
  return Finder(text.substr(begin), fresh_from - std::min(fresh_from, begin)).Find();
}

bool IsError(std::string_view line) { return !ExceptionName(line).empty() || KindOfLine(line) == Kind::kEnding; }

bool ReportsAnotherProcess(std::string_view line) { return NamesAnotherProcess(ExceptionName(line)); }

bool HasTraceback(std::string_view text) { return Holds(text, kTraceback); }

}  // namespace muster
