// SPDX-License-Identifier: Apache-2.0
#include "usage/app_command.h"

#include <memory>
#include <utility>

#include "base/text.h"

namespace muster::usage {
namespace {

Flag DescribeOption(const CLI::Option& option) {
  Flag flag;
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  // "TEXT:{yaml,json}": the type, and what is checked.
  const std::string type = option.get_type_name();
  if (option.get_positional()) {
    flag.metavar = option.get_name(true);
    flag.choices = WordsIn(type);
  } else if (option.get_items_expected_max() > 0) {
    flag.metavar = type.substr(0, type.find(':'));
  }
  if (const size_t set = type.find(":{"); set != std::string::npos) {
    const std::string_view members = std::string_view(type).substr(set + 2);
    for (std::string_view member : Split(members.substr(0, members.find('}')), ',')) flag.choices.emplace_back(member);
  }
  flag.help = option.get_description();
  flag.fallback = option.get_default_str();
  if (std::string variable = option.get_envname(); !variable.empty()) flag.variables.push_back(std::move(variable));
  return flag;
}

Command DescribeAs(const std::string& name, const CLI::App& app) {
  Command command{.name = name, .summary = app.get_description()};
  for (const CLI::Option* option : app.get_options()) {
    (option->get_positional() ? command.operands : command.flags).push_back(DescribeOption(*option));
  }
  for (const CLI::App* inner : app.get_subcommands([](const CLI::App*) { return true; })) {
    command.commands.push_back(DescribeAs(name + " " + inner->get_name(), *inner));
  }
  return command;
}

}  // namespace

Command Describe(const CLI::App& app) { return DescribeAs(app.get_name(), app); }

void AddCompletionArguments(CLI::App* app, CompletionWords* words) {
  app->add_option("SHELL", words->shell, kShellHelp)->type_name(kShells)->required();
  app->add_option("WORD", words->words, kWordHelp);
}

void AddManArguments(CLI::App* app, std::string* subcommand) {
  app->add_option("SUBCOMMAND", *subcommand, kSubcommandHelp);
}

void AddUsageCommands(CLI::App* app, std::function<int()>* run) {
  auto words = std::make_shared<CompletionWords>();
  CLI::App* completion = app->add_subcommand("completion", kCompletionSummary);
  AddCompletionArguments(completion, words.get());
  completion->callback([=] { *run = [=] { return PrintCompletion(Describe(*app), *words); }; });
  auto subcommand = std::make_shared<std::string>();
  CLI::App* man = app->add_subcommand("man", kManSummary);
  AddManArguments(man, subcommand.get());
  man->callback([=] { *run = [=] { return PrintManual(Describe(*app), *subcommand); }; });
}

}  // namespace muster::usage
