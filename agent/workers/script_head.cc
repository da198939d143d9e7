// SPDX-License-Identifier: Apache-2.0
#include "agent/workers/script_head.h"

#include <optional>
#include <vector>

#include "base/text.h"

namespace muster::agent {
namespace {

using Place = ScriptHead::Place;

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsPython(std::string_view path) {
  return BaseName(path).starts_with("python") || BaseName(path).starts_with("pypy");
}

bool IsShell(std::string_view path) {
  const std::string_view name = BaseName(path);
  return path.starts_with('/') && (name == "sh" || name == "bash" || name == "dash");
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::string_view word : Split(line, ' ')) {
    if (!Strip(word).empty()) words.push_back(Strip(word));
  }
  return words;
}

struct ShellWord {
  std::string text;     // without the command that stood in front
  std::string command;  // of a "$(...)" in front of the text; empty: none
};

// The first words of a line, as the shell takes quotes away. A command is allowed in front of a word only; nullopt: the
// line has it elsewhere, or something is not closed.
class ShellLine {
 public:
  explicit ShellLine(std::string_view line) : rest_(line) {}

  std::optional<ShellWord> Next() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
    ShellWord word;
    while (!rest_.empty() && rest_.front() != ' ') {
      if (!Piece(&word)) return std::nullopt;
    }
    return word;
  }

 private:
  bool Piece(ShellWord* word) {
    const char first = rest_.front();
    if (first == '$') return Command(word);
    rest_.remove_prefix(1);
    if (first == '\'') {
      const size_t end = rest_.find('\'');
      if (end == std::string_view::npos) return false;
      word->text += rest_.substr(0, end);
      rest_.remove_prefix(end + 1);
      return true;
    }
    if (first == '"') return Quoted(word);
    if (first == '\\') return Escaped(word);
    word->text += first;
    return true;
  }
  bool Quoted(ShellWord* word) {
    while (!rest_.empty() && rest_.front() != '"') {
      const char next = rest_.front();
      if (next == '$') {
        if (!Command(word)) return false;
        continue;
      }
      rest_.remove_prefix(1);
      if (next == '\\') {
        if (!Escaped(word)) return false;
      } else {
        word->text += next;
      }
    }
    if (rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool Escaped(ShellWord* word) {
    if (rest_.empty()) return false;
    word->text += rest_.front();
    rest_.remove_prefix(1);
    return true;
  }
  bool Command(ShellWord* word) {
    if (!rest_.starts_with("$(") || !word->text.empty() || !word->command.empty()) return false;
    size_t depth = 0;
    for (size_t at = 1; at < rest_.size(); ++at) {
      if (rest_[at] == '(') ++depth;
      if (rest_[at] == ')' && --depth == 0) {
        word->command = rest_.substr(2, at - 2);
        rest_.remove_prefix(at + 1);
        return true;
      }
    }
    return false;
  }

  std::string_view rest_;
};

// "exec PYTHON ..." in the second line.
ScriptHead OfShell(std::string_view line) {
  ShellLine words(line);
  const auto exec = words.Next();
  if (!exec || exec->text != "exec" || !exec->command.empty()) return {};
  const auto python = words.Next();
  if (!python || !IsPython(python->text)) return {};
  if (python->command.empty())
    return python->text.starts_with('/') ? ScriptHead{Place::kPath, python->text} : ScriptHead{};
  const std::string_view command = python->command;
  auto says = [&](std::string_view part) { return command.find(part) != std::string_view::npos; };
  if (!says("dirname") || !says("$0") || !python->text.starts_with('/')) return {};
  return {says("realpath") || says("readlink") ? Place::kBesideScript : Place::kBesideLink, python->text.substr(1)};
}

}  // namespace

ScriptHead ReadScriptHead(std::string_view text) {
  if (!text.starts_with("#!")) return {};
  text.remove_prefix(2);
  const size_t end = text.find('\n');
  const std::vector<std::string_view> words = Words(text.substr(0, end));
  if (words.empty()) return {};
  if (IsShell(words.front()) && end != std::string_view::npos) {
    const std::string_view rest = text.substr(end + 1);
    return OfShell(rest.substr(0, rest.find('\n')));
  }
  if (BaseName(words.front()) == "env") {
    size_t at = 1;
    while (at < words.size() && (words[at].starts_with('-') || words[at].find('=') != std::string_view::npos)) ++at;
    if (at == words.size() || !IsPython(words[at])) return {};
    return {words[at].starts_with('/') ? Place::kPath : Place::kOnPath, std::string(words[at])};
  }
  if (!words.front().starts_with('/') || !IsPython(words.front())) return {};
  return {Place::kPath, std::string(words.front())};
}

}  // namespace muster::agent
