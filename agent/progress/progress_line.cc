// SPDX-License-Identifier: Apache-2.0
#include "agent/progress/progress_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "base/text.h"
#include "base/visible_text.h"

namespace muster::agent {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsOfName(char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '/' || c == '.' || c == '-'; }

template <size_t size>
bool IsOneOf(std::string_view word, const std::array<std::string_view, size>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Reads from the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  bool Done() const { return at_ >= text_.size(); }
  char Now() const { return Done() ? '\0' : text_[at_]; }
  char Before() const { return at_ == 0 ? ' ' : text_[at_ - 1]; }
  size_t at() const { return at_; }
  void Go(size_t at) { at_ = at; }
  void Next() { ++at_; }
  std::string_view From(size_t begin) const { return text_.substr(begin, at_ - begin); }
  std::string_view Rest() const { return text_.substr(std::min(at_, text_.size())); }

  void SkipBlanks() {
    while (Now() == ' ' || Now() == '\t') Next();
  }
  bool Skip(char c) {
    if (Now() != c) return false;
    Next();
    return true;
  }
  bool SkipWord(std::string_view word) {
    if (!Rest().starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  // "12", "-0.5", "1e-3", "nan", "inf"; nullopt, and nothing is read: none.
  std::optional<double> Number() {
    const std::string_view rest = Rest();
    const bool minus = rest.starts_with('-');
    const std::string_view digits = rest.substr(minus || rest.starts_with('+') ? 1 : 0);
    if (digits.empty() || !(IsDigit(digits[0]) || (digits[0] == '.' && digits.size() > 1 && IsDigit(digits[1])) ||
                            IsWord(digits, "nan") || IsWord(digits, "inf"))) {
      return std::nullopt;
    }
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc()) return std::nullopt;
    at_ = static_cast<size_t>(end - text_.data());
    return minus ? -value : value;
  }

 private:
  // `text` begins with `word`, in any case, and no letter follows.
  static bool IsWord(std::string_view text, std::string_view word) {
    return Lower(text.substr(0, word.size())) == word && (text.size() == word.size() || !IsLetter(text[word.size()]));
  }

  std::string_view text_;
  size_t at_ = 0;
};

// ---- pairs of a name and a number

enum class Name { kStep, kEpoch, kLoss, kEpochs, kSteps, kOther };

// The kind of a name in small letters. `before`: the word before it.
Name NameOf(std::string_view name, std::string_view before) {
  static constexpr auto kOfSettings = std::to_array<std::string_view>(
      {"max", "num", "total", "number", "of", "warmup", "every", "per", "save", "eval", "logging", "min", "resume"});
  static constexpr auto kOfEvaluation = std::to_array<std::string_view>(
      {"val", "valid", "validation", "eval", "evaluation", "test", "dev", "best", "final", "average", "scale"});
  static constexpr auto kStepNames = std::to_array<std::string_view>(
      {"step", "steps", "global_step", "global_steps", "train_step", "trainer/global_step", "iter", "iters",
       "iteration", "iterations", "batch", "update", "updates", "num_updates", "batch_idx"});
  static constexpr auto kLossNames =
      std::to_array<std::string_view>({"loss", "train_loss", "train/loss", "training_loss", "train-loss", "lm_loss",
                                       "loss_step", "train_loss_step", "loss/train", "train/loss_step"});
  if (name == "total_epochs" || name == "num_epochs" || name == "max_epochs") return Name::kEpochs;
  if (name == "total_steps" || name == "max_steps" || name == "num_steps") return Name::kSteps;
  const bool setting = IsOneOf(before, kOfSettings);
  if (name == "epoch" || name == "epochs") {
    if (setting) return name == "epochs" && before != "per" && before != "of" ? Name::kEpochs : Name::kOther;
    return name == "epoch" ? Name::kEpoch : Name::kOther;
  }
  if (IsOneOf(name, kStepNames)) return setting ? Name::kOther : Name::kStep;
  if (IsOneOf(name, kLossNames)) return IsOneOf(before, kOfEvaluation) ? Name::kOther : Name::kLoss;
  return Name::kOther;
}

struct Pairs {
  ProgressLine line;
  int numbers = 0;          // pairs in all
  bool is_summary = false;  // of a whole run, or of an evaluation
  bool is_prose = false;    // the total stands behind "of"
};

// "/ 100" behind a number.
std::optional<double> TotalBehind(Reader& reader) {
  const size_t back = reader.at();
  reader.SkipBlanks();
  if (reader.Skip('/')) {
    reader.SkipBlanks();
    if (const auto total = reader.Number(); total && reader.Now() != '/') return total;  // a date has one more
  }
  reader.Go(back);
  return std::nullopt;
}

// The same, or " of 100".
std::optional<double> TotalBehind(Reader& reader, Pairs& pairs) {
  if (const auto total = TotalBehind(reader)) return total;
  const size_t back = reader.at();
  reader.SkipBlanks();
  if (reader.at() > back && reader.SkipWord("of ")) {
    reader.SkipBlanks();
    if (const auto total = IsDigit(reader.Now()) ? reader.Number() : std::nullopt) {
      pairs.is_prose = true;
      return total;
    }
  }
  reader.Go(back);
  return std::nullopt;
}

// Between a name and its number: quotes, ":" or "=", brackets, "(train)". False: something else stands there.
bool SkipToNumber(Reader& reader) {
  reader.Skip('\'') || reader.Skip('"');
  reader.SkipWord("(train)");
  reader.SkipBlanks();
  reader.Skip(':') || reader.Skip('=');
  reader.SkipBlanks();
  reader.Skip('[') || reader.Skip('(') || reader.Skip('\'') || reader.Skip('"') || reader.Skip('#');
  reader.SkipBlanks();
  return IsDigit(reader.Now()) || reader.Now() == '-' || reader.Now() == '+' || reader.Now() == '.' ||
         IsLetter(reader.Now());
}

// The fraction that stands in brackets behind an epoch: "[640/60000 (1%)]", "][ 10/5005]".
void ReadFractionOfEpoch(Reader& reader, ProgressLine& line) {
  const size_t back = reader.at();
  reader.Skip(']');
  reader.SkipBlanks();
  if (!line.step && reader.Skip('[')) {
    reader.SkipBlanks();
    const auto step = StepsOf(reader.Number());
    const auto steps = step ? StepsOf(TotalBehind(reader)) : std::nullopt;
    if (steps && *steps > 0) {
      line.step = step;
      line.steps = steps;
      return;
    }
  }
  reader.Go(back);
}

void TakePair(Name name, double number, Reader& reader, Pairs& pairs) {
  ProgressLine& line = pairs.line;
  switch (name) {
    case Name::kStep:
      if (line.step) return;
      line.step = StepsOf(number);
      if (const auto total = StepsOf(TotalBehind(reader, pairs)); line.step && total && *total > 0) line.steps = total;
      return;
    case Name::kEpoch:
      if (line.epoch) return;
      line.epoch = EpochsOf(number);
      if (const auto total = EpochsOf(TotalBehind(reader, pairs)); line.epoch && total && *total > 0)
        line.epochs = total;
      return ReadFractionOfEpoch(reader, line);
    case Name::kLoss:
      if (!line.loss) line.loss = number;
      return;
    case Name::kEpochs:
      if (number > 0) line.epochs = EpochsOf(number);
      return;
    case Name::kSteps:
      if (const auto total = StepsOf(number); total && *total > 0) line.steps = total;
      return;
    case Name::kOther:
      return;
  }
}

Pairs ReadPairs(std::string_view text) {
  Pairs pairs;
  Reader reader(text);
  std::string before;
  while (!reader.Done()) {
    if (!IsLetter(reader.Now()) || IsOfName(reader.Before())) {
      if (reader.Now() == ',' || reader.Now() == '|' || reader.Now() == ';') before.clear();
      reader.Next();
      continue;
    }
    const size_t begin = reader.at();
    while (!reader.Done() && IsOfName(reader.Now())) reader.Next();
    std::string name = Lower(reader.From(begin));
    while (!name.empty() && !IsLetter(name.back()) && !IsDigit(name.back())) name.pop_back();
    if (name.find("runtime") != std::string::npos) pairs.is_summary = true;
    const size_t behind = reader.at();
    const bool apart = SkipToNumber(reader) && reader.at() > behind;
    if (const auto number = apart ? reader.Number() : std::nullopt) {
      ++pairs.numbers;
      TakePair(NameOf(name, before), *number, reader, pairs);
    } else {
      reader.Go(behind);
    }
    before = std::move(name);
  }
  return pairs;
}

// ---- bars

// Whether a bar is of work that is not the training: a word of its title begins so.
bool IsOfOtherWork(std::string_view title) {
  static constexpr auto kBeginnings = std::to_array<std::string_view>(
      {"valid",  "eval",     "test",    "sanity",  "predict", "generat", "map",     "filter",  "load",   "download",
       "fetch",  "token",    "convert", "pack",    "saving",  "creat",   "flatten", "extract", "resolv", "upload",
       "prepar", "inferenc", "group",   "writing", "reading", "captur",  "compil",  "warmup",  "warm-up"});
  const std::string lower = Lower(title);
  for (size_t at = 0; at < lower.size(); ++at) {
    if (!IsLetter(lower[at]) || (at > 0 && IsLetter(lower[at - 1]))) continue;
    const std::string_view word = std::string_view(lower).substr(at);
    if (std::any_of(kBeginnings.begin(), kBeginnings.end(), [&](auto begin) { return word.starts_with(begin); }))
      return true;
  }
  return false;
}

// "112", "1.2k", "3M": a count of a bar.
std::optional<int64_t> Count(Reader& reader) {
  if (!IsDigit(reader.Now())) return std::nullopt;
  auto number = reader.Number();
  if (!number) return std::nullopt;
  const double factor = reader.Skip('k') ? 1e3 : reader.Skip('M') ? 1e6 : reader.Skip('G') ? 1e9 : 1;
  return StepsOf(std::round(*number * factor));
}

// "00:02", "1:00:02".
bool SkipTime(Reader& reader) {
  int parts = 0;
  do {
    if (!IsDigit(reader.Now())) return false;
    while (IsDigit(reader.Now())) reader.Next();
    ++parts;
  } while (reader.Skip(':'));
  return parts >= 2;
}

enum class BarForm { kNone, kDrawn, kTimed };

// Box drawing and block elements, U+2500 to U+259F.
bool IsDrawn(std::string_view text) {
  return text.size() > 1 && text[0] == '\xe2' && text[1] >= '\x94' && text[1] <= '\x96';
}

// What stands behind the counts of a bar. May move `reader`.
BarForm FormBehind(Reader& reader) {
  reader.SkipBlanks();
  if (reader.Skip('[')) {
    if (reader.Now() == '=' || reader.Now() == '>' || reader.Now() == '.') return BarForm::kTimed;  // Keras 2
    return SkipTime(reader) && (reader.Now() == '<' || reader.Now() == ',') ? BarForm::kTimed : BarForm::kNone;  // tqdm
  }
  if (IsDrawn(reader.Rest())) return BarForm::kDrawn;                                                  // Keras 3
  return SkipTime(reader) && reader.Rest().starts_with(" \u2022") ? BarForm::kTimed : BarForm::kNone;  // Rich
}

struct Bar {
  int64_t step = 0;
  std::optional<int64_t> steps;
  std::string_view title, rest;
};

// The counts of a bar, with what stands before and behind them. Rich draws its bar before them, and behind the counts
// of epochs, which then look like those of a bar of Keras.
std::optional<Bar> FindBar(std::string_view text) {
  std::optional<Bar> drawn;
  Reader reader(text);
  while (!reader.Done()) {
    if (!IsDigit(reader.Now()) || IsOfName(reader.Before())) {
      reader.Next();
      continue;
    }
    const size_t begin = reader.at();
    const auto step = Count(reader);
    std::optional<int64_t> steps;
    const bool counted = step && (reader.Skip('/') ? (steps = Count(reader)) && *steps > 0 : reader.SkipWord("it"));
    if (counted) {
      const size_t behind = reader.at();
      const Bar bar{*step, steps, text.substr(0, begin), text.substr(behind)};
      const BarForm form = FormBehind(reader);
      if (form == BarForm::kTimed) return bar;
      if (form == BarForm::kDrawn && steps && !drawn) drawn = bar;
      reader.Go(behind);
    }
    while (!reader.Done() && IsOfName(reader.Now())) reader.Next();
    if (reader.at() == begin) reader.Next();
  }
  return drawn;
}

std::optional<ProgressLine> ReadBar(const Bar& bar) {
  const std::string_view title = bar.title.substr(0, bar.title.find('%'));
  if (IsOfOtherWork(title) || bar.rest.find("B/s") != std::string_view::npos) return std::nullopt;  // bytes
  ProgressLine line = ReadPairs(title).line;
  line.step = bar.step;
  line.steps = bar.steps;
  const Pairs behind = ReadPairs(bar.rest);
  if (!line.loss) line.loss = behind.line.loss;
  if (!line.epoch) line.epoch = behind.line.epoch;
  return line;
}

// Three letters as one number, capitals as small ones.
consteval uint32_t Three(std::string_view letters) {
  return static_cast<uint32_t>(letters[0]) << 16 | static_cast<uint32_t>(letters[1]) << 8 |
         static_cast<uint32_t>(letters[2]);
}

}  // namespace

std::optional<int64_t> StepsOf(std::optional<double> number) {
  const bool counts =
      number && *number >= 0 && *number <= static_cast<double>(kMaxSteps) && *number == std::floor(*number);
  return counts ? std::optional(static_cast<int64_t>(*number)) : std::nullopt;
}

std::optional<double> EpochsOf(std::optional<double> number) {
  return number && *number >= 0 && *number <= kMaxEpochs ? number : std::nullopt;
}

bool MayTellProgress(std::string_view line) {
  bool digit = false, word = false;
  uint32_t last = 0;  // the newest three letters
  for (const char c : line) {
    digit |= IsDigit(c) || (c | 0x20) == 'n';  // nan, inf
    word |= c == '[' || c == '\xe2';           // a bar with a unit of its own, or one that is drawn
    last = (last << 8 | (static_cast<unsigned char>(c) | 0x20U)) & 0xffffffU;
    word |= last == Three("oss") || last == Three("tep") || last == Three("och") || last == Three("ite") ||
            last == Three("atc") || last == Three("dat");  // loss, step, epoch, iter, batch, update
    if (digit && word) return true;
  }
  return false;
}

std::optional<ProgressLine> ReadProgressLine(std::string_view line) {
  line = line.substr(0, kMaxProgressLine);
  if (!MayTellProgress(line)) return std::nullopt;
  std::string plain;
  if (line.find('\x1b') != std::string_view::npos) {  // names and numbers that a program colours stand together
    plain = VisibleText(line);
    line = plain;
  }
  if (const auto bar = FindBar(line)) return ReadBar(*bar);
  Pairs pairs = ReadPairs(line);
  ProgressLine& found = pairs.line;
  if (pairs.is_summary) return std::nullopt;
  const bool is_prose = !found.steps || pairs.is_prose;
  if (found.step && pairs.numbers < 2 && is_prose && !found.epoch && !found.loss) found.step.reset();
  if (!found.step && !found.epoch && !found.loss) return std::nullopt;
  return found;
}

}  // namespace muster::agent
