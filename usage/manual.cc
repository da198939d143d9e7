// SPDX-License-Identifier: Apache-2.0
#include "usage/manual.h"

#include <algorithm>

#include "base/text.h"

namespace muster::usage {
namespace {

std::string Bold(std::string_view text) { return fmt::format("\\fB{}\\fR", RoffText(text)); }
std::string Italic(std::string_view text) { return fmt::format("\\fI{}\\fR", RoffText(text)); }

// "-r, --redirects STREAMS"; an operand is its metavar.
std::string Spelled(const Flag& flag) {
  std::vector<std::string> names;
  for (const std::string& name : flag.names) names.push_back(Bold(name));
  std::string spelled = Join(names, ", ");
  if (!names.empty() && !flag.metavar.empty()) spelled += ' ';
  if (!flag.metavar.empty()) spelled += Italic(flag.metavar);
  return spelled;
}

void AppendEntry(const Flag& flag, std::string* page) {
  std::string text = RoffText(flag.help);
  if (!flag.choices.empty()) text += fmt::format(" ({})", RoffText(Join(flag.choices, ", ")));
  std::vector<std::string> notes;
  if (!flag.fallback.empty()) notes.push_back(RoffText("default " + flag.fallback));
  for (const std::string& variable : flag.variables) notes.push_back(RoffText(variable));
  if (!notes.empty()) text += fmt::format(" [{}]", Join(notes, "; "));
  *page += fmt::format(".TP\n{}\n{}\n", Spelled(flag), text);
}

std::string Synopsis(const Command& command) {
  std::string line = Bold(command.name);
  if (!command.flags.empty()) line += " [" + Italic("flags") + "]";
  if (!command.operands.empty()) {
    for (const Flag& operand : command.operands) line += " " + Italic(operand.metavar);
  } else if (!command.commands.empty()) {
    line += " " + Italic("SUBCOMMAND") + " [" + Italic("arguments") + "]";
  }
  if (command.wraps) line += " [" + Italic("arguments") + "]";
  return line;
}

void AppendFlags(const Command& command, std::string* page) {
  if (command.flags.empty()) return;
  *page += ".SH OPTIONS\n";
  if (command.spells_freely) *page += "Every flag may be abbreviated and written with underscores.\n";
  std::string_view heading;
  for (const Flag& flag : command.flags) {
    if (flag.heading != heading) *page += fmt::format(".SS {}\n", RoffText(heading = flag.heading));
    AppendEntry(flag, page);
  }
}

}  // namespace

std::string RoffText(std::string_view text) {
  std::string roff;
  bool bold = false;
  if (text.starts_with('.')) roff += "\\&";  // a dot at the beginning of a line would begin a request
  for (char c : text) {
    switch (c) {
      case '\\':
        roff += "\\e";
        break;
      case '-':
        roff += "\\-";  // "-" is a hyphen, which nobody can paste into a shell
        break;
      case '\'':
        roff += "\\(aq";
        break;
      case '"':
        roff += "\\(dq";
        break;
      case '^':
        roff += "\\(ha";
        break;
      case '~':
        roff += "\\(ti";
        break;
      case '`':
        bold = !bold;
        roff += bold ? "\\fB" : "\\fR";
        break;
      case '\n':
        roff += ' ';
        break;
      default:
        roff += c;
    }
  }
  if (bold) roff += "\\fR";
  return roff;
}

std::string PageName(std::string_view command) {
  std::string name(command);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string ManualPage(const Command& command, std::string_view source, const std::vector<std::string>& see_also) {
  const std::string name = PageName(command.name);
  std::string page = fmt::format(
      ".TH \"{}\" 1 \"\" \"{}\" \"\"\n.ad l\n.nh\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}\n.SH DESCRIPTION\n",
      RoffText(Upper(name)), RoffText(source), RoffText(name), RoffText(command.summary), Synopsis(command));
  for (std::string_view line : Split(command.description.empty() ? command.summary : command.description, '\n')) {
    page += line.empty() ? ".PP\n" : RoffText(line) + "\n";
  }
  if (!command.operands.empty()) page += ".SH ARGUMENTS\n";
  for (const Flag& operand : command.operands) AppendEntry(operand, &page);
  AppendFlags(command, &page);
  if (!command.commands.empty()) page += ".SH SUBCOMMANDS\n";
  for (const Command& inner : command.commands) {
    page += fmt::format(".TP\n{}\n{}\n", Bold(OwnName(inner)), RoffText(inner.summary));
  }
  std::vector<std::string> others;
  for (const std::string& other : see_also) others.push_back(fmt::format("{}(1)", Bold(PageName(other))));
  if (!others.empty()) page += fmt::format(".SH \"SEE ALSO\"\n{}\n", Join(others, ", "));
  return page;
}

}  // namespace muster::usage
