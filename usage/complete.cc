// SPDX-License-Identifier: Apache-2.0
#include "usage/complete.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "usage/shells/scripts.h"

namespace muster::usage {
namespace {

std::string WithDashes(std::string text) {
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

// Reads the words in front of the last one, and so finds what the last one may be.
class Reader {
 public:
  explicit Reader(const Command& program) : program_(program), command_(&program) {}

  void Take(const std::string& word) {
    if (valued_ != nullptr) {
      valued_ = nullptr;
    } else if (word == "--" && !flags_ended_) {
      flags_ended_ = true;
    } else if (IsFlag(word) && word != "-") {
      valued_ = AwaitingValue(word);
    } else if (const Command* inner = operands_ == 0 ? FindCommand(*command_, word) : nullptr; inner != nullptr) {
      command_ = inner;
    } else {
      ++operands_;
      flags_ended_ = flags_ended_ || command_->wraps;
    }
  }

  Answer Complete(const std::string& word) const {
    Answer answer;
    if (valued_ != nullptr) {
      AddValues(*valued_, word, 0, &answer);
    } else if (IsFlag(word)) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos) {
        AddFlags(word, &answer);
      } else if (const Flag* flag = Find(word.substr(0, equals)); flag != nullptr) {
        AddValues(*flag, word, equals + 1, &answer);
      }
    } else {
      AddOperands(word, &answer);
    }
    return answer;
  }

 private:
  bool IsFlag(std::string_view word) const { return !flags_ended_ && word.starts_with('-'); }

  // By its name, else by the only beginning of one.
  const Flag* Find(const std::string& name) const {
    const std::string wanted = WithDashes(name);
    const Flag* found = nullptr;
    for (const Flag& flag : command_->flags) {
      for (const std::string& known : flag.names) {
        if (known == wanted) return &flag;
        if (!known.starts_with("--") || !known.starts_with(wanted)) continue;
        if (found != nullptr && found != &flag) return nullptr;
        found = &flag;
      }
    }
    return found;
  }

  // The flag whose value is the next word: of "--redirects", "-r" and "-mr", not of "--redirects=3" and "-r3".
  const Flag* AwaitingValue(const std::string& word) const {
    if (word.starts_with("--")) {
      const Flag* flag = word.find('=') == std::string::npos ? Find(word) : nullptr;
      return flag != nullptr && !flag->metavar.empty() ? flag : nullptr;
    }
    for (size_t at = 1; at < word.size(); ++at) {
      const Flag* flag = Find({'-', word[at]});
      if (flag == nullptr) return nullptr;
      if (!flag->metavar.empty()) return at + 1 == word.size() ? flag : nullptr;
    }
    return nullptr;
  }

  // The value begins in `word` at `before`.
  static void AddValues(const Flag& flag, const std::string& word, size_t before, Answer* answer) {
    for (const std::string& choice : flag.choices.empty() ? WordsIn(flag.metavar) : flag.choices) {
      std::string whole = word.substr(0, before) + choice;
      if (whole.starts_with(word)) answer->candidates.push_back({std::move(whole), ""});
    }
    answer->place = PlaceOf(flag.metavar);
    answer->before = before;
    if (flag.metavar.find('=') == std::string::npos) return;  // else as "NAME=FOLDER"
    if (const size_t equals = word.find('=', before); equals != std::string::npos) answer->before = equals + 1;
  }

  void AddFlags(const std::string& word, Answer* answer) const {
    const bool underscores = command_->spells_freely && word.find('_') != std::string::npos;
    for (const Flag& flag : command_->flags) {
      for (std::string name : flag.names) {
        if (underscores) std::replace(name.begin() + 2, name.end(), '-', '_');
        if (name.starts_with(word)) answer->candidates.push_back({std::move(name), flag.help});
      }
    }
  }

  static void AddCommands(const Command& command, const std::string& word, Answer* answer) {
    for (const Command& inner : command.commands) {
      const std::string_view name = OwnName(inner);
      if (name.starts_with(word)) answer->candidates.push_back({std::string(name), inner.summary});
    }
  }

  void AddOperands(const std::string& word, Answer* answer) const {
    const size_t operands = command_->operands.size();
    if (operands_ == 0) AddCommands(*command_, word, answer);
    if (operands_ >= operands && command_->wraps) {
      answer->place = Place::kFile;
    } else if (operands > 0) {
      const Flag& operand = command_->operands[std::min(operands_, operands - 1)];
      if (operand.metavar == "SUBCOMMAND") AddCommands(program_, word, answer);
      AddValues(operand, word, 0, answer);
    } else if (command_->commands.empty() && word.empty() && !flags_ended_) {
      AddFlags("--", answer);
    }
  }

  const Command& program_;
  const Command* command_;
  const Flag* valued_ = nullptr;  // its value comes next
  size_t operands_ = 0;
  bool flags_ended_ = false;
};

std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return text;
}

std::string_view PlaceName(Place place) {
  switch (place) {
    case Place::kNone:
      return "none";
    case Place::kFile:
      return "files";
    case Place::kFolder:
      return "folders";
    case Place::kProgram:
      return "programs";
  }
  return "";
}

}  // namespace

Answer Complete(const Command& program, const std::vector<std::string>& words) {
  Reader reader(program);
  for (size_t at = 0; at + 1 < words.size(); ++at) reader.Take(words[at]);
  return reader.Complete(words.empty() ? "" : words.back());
}

std::string AnswerText(const Answer& answer) {
  std::string text = fmt::format("{} {}\n", PlaceName(answer.place), answer.before);
  for (const Candidate& candidate : answer.candidates) {
    text += fmt::format("{}\t{}\n", candidate.word, OneLine(candidate.help));
  }
  return text;
}

std::string Script(std::string_view shell, std::string_view program) {
  constexpr std::string_view kStandIn = "PROGRAM";
  std::string script;
  for (const auto& [name, text] : {std::pair("bash", kBash), std::pair("zsh", kZsh), std::pair("fish", kFish)}) {
    if (shell == name) script = text;
  }
  for (size_t at = script.find(kStandIn); at != std::string::npos; at = script.find(kStandIn, at)) {
    script.replace(at, kStandIn.size(), program);
  }
  return script;
}

}  // namespace muster::usage
